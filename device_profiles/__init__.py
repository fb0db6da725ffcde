"""Device profiles, one YAML file per device; ``perfport.profile`` reads them."""
