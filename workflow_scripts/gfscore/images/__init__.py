"""Datasets of labelled images from any source, attributes of their samples, and image corruptions.

`datasets` opens an entry of the configuration as an ImageSet (`image_set`), and `manifests` records what it is and
finds it again. Sources of images are declared in `sources`, sources of attributes in `attributes`; a new one is a
module of its own. Readers of formats that several of them share are `array_files`, `encoded`, `encoded_parquet`,
`listing` and `published_files`.
"""
