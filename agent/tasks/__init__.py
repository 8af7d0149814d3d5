"""Tasks beside conversational search: RCD-2020 and Touché."""
