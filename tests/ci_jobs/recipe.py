"""Renders a recipe for conda (RECIPE.YAML) for each platform that is named, as rattler-build would, and prints an object of JSON: what of
it is built where. A recipe that rattler-build does not take ends it with its complaint.

    recipe.py RECIPE.YAML PLATFORM...

Owns nothing of what is right: the test compares. Builds and fetches nothing."""

import json
import sys

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe


def rendered(file, platform):
    config = RenderConfig(platform=PlatformConfig(target_platform=platform, build_platform=platform, host_platform=platform))
    return [variant.recipe.to_dict() for variant in Stage0Recipe.from_file(file).render(render_config=config)]


if __name__ == "__main__":
    file, *platforms = sys.argv[1:]
    print(json.dumps({platform: rendered(file, platform) for platform in platforms}))
