from .selection import get_plot as get_plot
from .selection import list_plots as list_plots
from .selection import plot_data as plot_data
