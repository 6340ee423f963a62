import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { root, temporaryFolder } from './launch.ts';

/**
 * Bundles a server of this folder, so that it starts as Custos does: in few files without types, with the bytecode of its
 * first start. Returns the program for `node`.
 */
export async function bundleOwn(file: string): Promise<string> {
  // From here, packages with native code are found.
  const folder = temporaryFolder(join(root, 'dist'));
  await build({
    absWorkingDir: root,
    entryPoints: { server: join('bench', 'servers', file) },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    minifyWhitespace: true,
    minifySyntax: true,
    logLevel: 'error',
    external: ['better-sqlite3'],
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
  });
  const cache = join(folder, 'bytecode');
  mkdirSync(cache);
  const program = join(folder, 'start.mjs');
  writeFileSync(
    program,
    `import { enableCompileCache } from 'node:module';
enableCompileCache(${JSON.stringify(cache)});
await import('./server.mjs');
`,
  );
  return program;
}
