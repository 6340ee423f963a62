import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { type BuildOptions, build, type OutputFile, type Plugin, transform } from 'esbuild';
import { type BuildRecord, isBuilt, out, readRecord, recordName, stateOf } from './build-record.js';
import { bundleInspector } from './inspector.ts';

// Bundles the program into `dist/`. Does nothing when the inputs have not changed since the last build.
//
// - `custos.js`: the entry point of the `custos` command.
// - `program.cjs`: the program as one script. Node stores its compiled code in `cache/`, which makes later starts
//   faster.
// - `precompile-worker.cjs`: a thread of the simulated chains.
// - `schema.sqlite`: an empty database with the newest schema, from which a sandbox in memory starts.
// - `testing/`: the library `custos/testing`, as modules.
// - `inspector/`: the pages of the inspector.
// - `native/`: the binaries of libsecp256k1.

const root = join(import.meta.dirname, '..');
const oldestNode = 24;

// A package with native code. It is the only package that must be installed with the published program.
const external = ['better-sqlite3'];

// Optional packages of the ORM and its drivers that are not installed. Their import is expected to fail.
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

// Each file of the library starts with this check. Whichever file an old version of Node loads first, the error
// message is clear.
const libraryBanner = `if (Number(process.versions.node.split('.')[0]) < ${oldestNode}) throw new Error('custos/testing: Node ' + process.versions.node + ' is too old; run the tests with Node ${oldestNode} or newer');
${banner}`;

// The entry point must run on old versions of Node, so that it can start a newer one or print an error.
const entry = `#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

if (Number(process.versions.node.split('.')[0]) >= ${oldestNode}) {
  const { createRequire, enableCompileCache } = await import('node:module');
  // The cache is next to the program, where only someone who could replace the program can write, because cached code
  // is executed. Node's default is a folder in /tmp, which any user can create. If the folder cannot be written, Node
  // starts without a cache.
  enableCompileCache(join(dirname(fileURLToPath(import.meta.url)), 'cache'));
  createRequire(import.meta.url)('./program.cjs');
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

/**
 * Minifies the generated validators, which are a third of the program and do not appear in stack traces. All other
 * code keeps its names, so that stack traces stay readable.
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
 * Loads Node's own modules as objects. An `import` of `node:http` reads all its exports, and one of them loads Node's
 * `fetch`, which takes 30 ms.
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

/**
 * Code that dependencies load but this program does not use, by the imported name: parsers of bodies and of
 * documents, and a second set of validators. It is a tenth of the program, and takes 40 ms to load.
 */
const unused: { readonly [name: string]: RegExp } = {
  'body-parser': /[\\/]express[\\/]/,
  'serve-static': /[\\/]express[\\/]/,
  'openapi-schema-validator': /[\\/]openapi-backend[\\/]/,
  'mock-json-schema': /[\\/]openapi-backend[\\/]/,
  './refparser': /[\\/]openapi-backend[\\/]/,
  ajv: /[\\/]openapi-backend[\\/]/,
};

// openapi-backend calls the parser of documents with a document that is already parsed.
const leftOut = (path: string): string =>
  path === './refparser'
    ? 'exports.parse = async (document) => document;'
    : `module.exports = class { constructor() { throw new Error('${path} is not in the bundle'); } };`;

const withoutUnused: Plugin = {
  name: 'without-unused',
  setup(pluginBuild) {
    pluginBuild.onResolve({ filter: /^(\.\/)?[a-z-]+$/ }, ({ path, importer }) =>
      unused[path]?.test(importer) ? { path, namespace: 'left-out' } : undefined,
    );
    pluginBuild.onLoad({ filter: /.*/, namespace: 'left-out' }, ({ path }) => ({
      contents: leftOut(path),
      loader: 'js',
    }));
  },
};

const common = {
  absWorkingDir: root,
  outdir: out,
  write: false,
  metafile: true,
  bundle: true,
  platform: 'node',
  target: `node${oldestNode}`,
  minifyWhitespace: true,
  minifySyntax: true,
  keepNames: false,
  // This limits what Node prints for an uncaught error, because it prints the whole line.
  lineLimit: 500,
  legalComments: 'none',
  logLevel: 'warning',
  external: [...external, ...absent],
  // The main file of the package is a UMD module. A bundler cannot resolve its `require` calls.
  alias: { 'jsonc-parser': './node_modules/jsonc-parser/lib/esm/main.js' },
  plugins: [minifyValidators, builtinsAsObjects, withoutUnused],
} satisfies BuildOptions;

/** Bundles the program as one CommonJS script. */
async function bundleProgram() {
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: { program: 'src/main.ts' },
    format: 'cjs',
    // A script loads Node's modules as objects anyway, without a copy for each file that imports them.
    plugins: [minifyValidators, withoutUnused],
    // The `import()` of a package with native code becomes `require`.
    supported: { 'dynamic-import': false },
    define: { 'import.meta.dirname': '__dirname', 'import.meta.url': '__fileUrl' },
    banner: { js: "const __fileUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
  const { text } = outputFiles[0] as OutputFile;
  return { text, inputs: Object.keys(metafile.inputs) };
}

/** Bundles the thread of the simulated chains that runs long precompiles. */
async function bundlePrecompileWorker() {
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: { 'precompile-worker': 'src/sandbox/simulated/chains/evm/precompile-worker.ts' },
    outExtension: { '.js': '.cjs' },
    format: 'cjs',
    plugins: [],
  });
  return { files: outputFiles, inputs: Object.keys(metafile.inputs) };
}

/** Makes an empty database with the program's migrations. */
async function emptyDatabase(): Promise<Buffer> {
  const [{ default: Sqlite }, { migrations }, { upgradeSqlite }] = await Promise.all([
    import('better-sqlite3'),
    import('../src/storage/migrations/migrations.ts'),
    import('../src/storage/sqlite/upgrade-sqlite.ts'),
  ]);
  const handle = new Sqlite(':memory:');
  upgradeSqlite(
    handle,
    migrations.map(({ sqlite }) => sqlite),
  );
  handle.exec('vacuum');
  const image = handle.serialize();
  handle.close();
  return image;
}

/** Bundles the process that holds the master keys. It is small, because it starts with every server. */
async function bundleSigner() {
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: { signer: 'src/keys/signer-main.ts' },
    chunkNames: 'signer/[name]-[hash]',
    splitting: true,
    format: 'esm',
    banner: { js: banner },
  });
  return { files: outputFiles, inputs: Object.keys(metafile.inputs) };
}

async function bundleTestingLibrary() {
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: {
      'testing/testing': 'src/testing/testing.ts',
      'testing/fixtures': 'src/testing/fixtures.ts',
      'testing/matchers': 'src/testing/matchers.ts',
      'testing/jest': 'src/testing/jest.ts',
      'testing/reporter': 'src/testing/reporter.ts',
    },
    chunkNames: 'testing/chunks/[name]-[hash]',
    splitting: true,
    format: 'esm',
    banner: { js: libraryBanner },
  });
  return { files: outputFiles, inputs: Object.keys(metafile.inputs) };
}

async function bundle(previous: BuildRecord | undefined): Promise<void> {
  const [program, signer, precompiles, testing, inspector] = await Promise.all([
    bundleProgram(),
    bundleSigner(),
    bundlePrecompileWorker(),
    bundleTestingLibrary(),
    bundleInspector(),
  ]);
  const files = [
    { path: 'program.cjs', contents: program.text },
    { path: 'custos.js', contents: entry },
    { path: 'schema.sqlite', contents: await emptyDatabase() },
    ...[...signer.files, ...precompiles.files, ...testing.files].map(({ path, contents }) => ({
      path: relative(out, path),
      contents,
    })),
    ...inspector.files.map(({ path, contents }) => ({ path: join('inspector', path), contents })),
    ...nativeBinaries(),
  ];
  const outputs = files.map(({ path }) => path);
  for (const { path, contents } of files) {
    put(path, contents);
  }
  const read = [
    'codegen/build-record.js',
    'codegen/build.ts',
    'codegen/inspector.ts',
    'package-lock.json',
    ...[...program.inputs, ...signer.inputs, ...precompiles.inputs, ...testing.inputs].filter(
      (path) => !/^(builtin|left-out):|^<stdin>$/.test(path),
    ),
    ...inspector.inputs,
  ];
  const inputs = Object.fromEntries(read.map((path) => [path, stateOf(path)]));
  // Removes the compiled code of earlier builds.
  rmSync(join(out, 'cache'), { recursive: true, force: true });
  // Keeps the chunks of the previous build, which a running server may still load, and deletes older ones.
  const older = (previous?.outputs ?? []).filter((path) => !outputs.includes(path));
  for (const path of previous?.older ?? []) {
    if (!outputs.includes(path) && !older.includes(path)) rmSync(join(out, path), { force: true });
  }
  put(recordName, `${JSON.stringify({ inputs, outputs, older } satisfies BuildRecord)}\n`);
}

/** Copies the prebuilt binaries of the package `secp256k1`. The program uses only them and the wrapper. */
function nativeBinaries() {
  const folder = join(root, 'node_modules', 'secp256k1', 'prebuilds');
  return globSync('*/*.node', { cwd: folder }).map((path) => ({
    path: join('native', 'secp256k1', path),
    contents: readFileSync(join(folder, path)),
  }));
}

/** Writes a file atomically, because a program may start during the build. */
function put(path: string, contents: string | Uint8Array): void {
  const file = join(out, path);
  const temporaryFile = `${file}.${process.pid}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(temporaryFile, contents, { mode: 0o755 });
  renameSync(temporaryFile, file);
}

// The published package contains no files of earlier builds.
if (process.argv.includes('--clean')) rmSync(out, { recursive: true, force: true });
if (!isBuilt()) await bundle(readRecord());
