import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build, type Plugin, transform } from 'esbuild';
import { bundleInspector } from './inspector.ts';

// Bundles the program into `dist/`: `custos.js` (the entry point of the `custos` command), the program, chunks that are
// loaded on demand, and `inspector/`, the pages of the inspector. Does nothing when the inputs have not changed since the last build.

const root = join(import.meta.dirname, '..');
const out = join(root, 'dist');
const recordName = 'build.json';
const recordFile = join(out, recordName);
const oldestNode = 24;

// Packages with native code: the only ones that the published program needs installed.
const external = ['better-sqlite3', 'secp256k1'];

// Optional packages of the ORM and its drivers that are not installed; importing them is expected to fail.
const absent = [
  '@mikro-orm/seeder',
  '@mikro-orm/entity-generator',
  '@mikro-orm/cli',
  'pg-native',
  'pg-cloudflare',
];

// Bundled CommonJS packages call `require` for Node's built-in modules, which an ES module does not have.
const banner =
  "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);";

// Must run on old versions of Node, to start a newer one or print an error.
const entry = `#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

if (Number(process.versions.node.split('.')[0]) >= ${oldestNode}) {
  module.enableCompileCache();
  await import('./program.js');
} else {
  // The package \`node\` contains a recent Node: in a clone, or installed beside this package.
  const here = dirname(fileURLToPath(import.meta.url));
  const places = [join(here, '..', 'node_modules'), join(here, '..', '..')];
  const newer = places.map((place) => join(place, 'node', 'bin', 'node')).find((path) => existsSync(path));
  if (newer !== undefined) {
    const child = spawn(newer, process.argv.slice(1), { stdio: 'inherit' });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
    child.on('exit', (code, signal) => process.exit(code === null ? (signal === null ? 1 : 130) : code));
  } else {
    console.error('custos: Node ' + process.versions.node + ' is too old; install Node ${oldestNode} or newer, or let npm bring it: \`npx -p node@${oldestNode} -p custos custos sandbox\`, or \`npm install node@${oldestNode}\` beside custos');
    process.exitCode = 1;
  }
}
`;

/** The inputs and outputs of the last build. */
interface Record {
  /** Path relative to the root -> size and modification time. */
  inputs: { [path: string]: string };
  outputs: string[];
  /** Files of the previous build that are not in `outputs`. */
  older: string[];
}

function readRecord(): Record | undefined {
  return existsSync(recordFile) ? (JSON.parse(readFileSync(recordFile, 'utf8')) as Record) : undefined;
}

function stateOf(path: string): string {
  const found = statSync(join(root, path), { throwIfNoEntry: false });
  return found === undefined ? 'absent' : `${found.size} ${found.mtimeMs}`;
}

function isCurrent({ inputs, outputs }: Record): boolean {
  return (
    Object.entries(inputs).every(([path, state]) => stateOf(path) === state) &&
    outputs.every((path) => existsSync(join(out, path)))
  );
}

/**
 * Minifies the generated validators, which are a third of the program and do not appear in stack traces. All other code
 * keeps its names, so that stack traces stay readable.
 */
const minifyValidators: Plugin = {
  name: 'minify-validators',
  setup(pluginBuild) {
    pluginBuild.onLoad({ filter: /[\\/]generated[\\/][a-z]+-validators\.js$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, 'utf8'), { format: 'esm', minify: true });
      return { contents: code, loader: 'js' };
    });
  },
};

/**
 * Node's own modules are taken as objects. An `import` of `node:http` reads all its exports, and one of them loads
 * Node's `fetch`, which takes 30 ms.
 */
const builtinsAsObjects: Plugin = {
  name: 'builtins-as-objects',
  setup(pluginBuild) {
    pluginBuild.onResolve({ filter: /^node:/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'builtin' } : undefined,
    );
    pluginBuild.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('${path}');`,
      loader: 'js',
    }));
  },
};

/** openapi-backend checks documents with it, which `quick` skips. Loading it compiles schemas. */
const withoutDocumentCheck: Plugin = {
  name: 'without-document-check',
  setup(pluginBuild) {
    pluginBuild.onResolve({ filter: /^openapi-schema-validator$/ }, ({ path }) => ({
      path,
      namespace: 'left-out',
    }));
    pluginBuild.onLoad({ filter: /.*/, namespace: 'left-out' }, ({ path }) => ({
      contents: `module.exports = class { constructor() { throw new Error('${path} is not in the bundle'); } };`,
      loader: 'js',
    }));
  },
};

async function bundle(previous: Record | undefined): Promise<void> {
  const result = await build({
    absWorkingDir: root,
    entryPoints: {
      program: 'src/main.ts',
      'testing/testing': 'src/testing/testing.ts',
      'testing/fixtures': 'src/testing/fixtures.ts',
      'testing/matchers': 'src/testing/matchers.ts',
    },
    outdir: out,
    write: false,
    metafile: true,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: `node${oldestNode}`,
    minifyWhitespace: true,
    minifySyntax: true,
    keepNames: false,
    legalComments: 'none',
    logLevel: 'warning',
    banner: { js: banner },
    external: [...external, ...absent],
    plugins: [minifyValidators, builtinsAsObjects, withoutDocumentCheck],
  });
  const inspector = await bundleInspector();
  const files = [
    ...result.outputFiles.map(({ path, contents }) => ({ path: relative(out, path), contents })),
    { path: 'custos.js', contents: entry },
    ...inspector.files.map(({ path, contents }) => ({ path: join('inspector', path), contents })),
  ];
  const outputs = files.map(({ path }) => path);
  for (const { path, contents } of files) {
    put(path, contents);
  }
  const read = [
    'codegen/build.ts',
    'codegen/inspector.ts',
    'package-lock.json',
    ...Object.keys(result.metafile.inputs).filter((path) => !/^(builtin|left-out):/.test(path)),
    ...inspector.inputs,
  ];
  const inputs = Object.fromEntries(read.map((path) => [path, stateOf(path)]));
  // Keeps the chunks of the previous build, which a running server may still load, and deletes older ones.
  const older = (previous?.outputs ?? []).filter((path) => !outputs.includes(path));
  for (const path of previous?.older ?? []) {
    if (!outputs.includes(path) && !older.includes(path)) rmSync(join(out, path), { force: true });
  }
  put(recordName, `${JSON.stringify({ inputs, outputs, older } satisfies Record)}\n`);
}

/** Writes a file atomically, because a program may start during the build. */
function put(path: string, contents: string | Uint8Array): void {
  const file = join(out, path);
  const temporaryFile = `${file}.${process.pid}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(temporaryFile, contents, { mode: 0o755 });
  renameSync(temporaryFile, file);
}

// What is published contains nothing of earlier builds.
if (process.argv.includes('--clean')) rmSync(out, { recursive: true, force: true });
const last = readRecord();
if (last === undefined || !isCurrent(last)) await bundle(last);
