import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder that holds `package.json`, whether the program runs from its sources or from its bundle. */
export function packageRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) {
    const above = dirname(folder);
    if (above === folder)
      throw new Error(`no package.json above \`${import.meta.dirname}\`; is the package complete?`);
    folder = above;
  }
  return folder;
}
