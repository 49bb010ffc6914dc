"""Averages of models: parameters of several processes become their mean now and then."""
