from .runs import train as train
