from .plot_results import plot as plot
from .plot_results import plot_data as plot_data
from .selection import get_plot as get_plot
from .selection import list_plots as list_plots
