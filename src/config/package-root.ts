import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Returns the folder with `package.json`, both when running from source and from the bundle. */
export function packageRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) {
    const above = dirname(folder);
    if (above === folder)
      throw new Error(`expected a package.json above \`${import.meta.dirname}\`; is the package complete?`);
    folder = above;
  }
  return folder;
}

export function packageVersion(): string {
  return manifest().version;
}

/** Returns the package's name in `import` statements. */
export function packageName(): string {
  return manifest().name;
}

function manifest(): { readonly name: string; readonly version: string } {
  return JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'));
}
