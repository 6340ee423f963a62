import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { isLong } from '../figures/figure.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const document = readFileSync(join(root, 'openapi/openapi.json'), 'utf8');
const judges = join(root, 'test');
const commands = [join(judges, 'node_modules/.bin')];
const env = { ...process.env, PATH: [...commands, process.env.PATH].join(delimiter) };

const generators = {
  'openapi-typescript': ['openapi.json', '--output', 'generated/openapi-typescript.d.ts'],
  'openapi-ts': ['--input', 'openapi.json', '--output', 'generated/hey-api', '--no-log-file', '--silent'],
  orval: ['--input', 'openapi.json', '--output', 'generated/orval.ts', '--client', 'fetch'],
};

/** A folder with the clients' sources and an OpenAPI document, which goes away with the variable. */
function clientProject(openapi: string): { folder: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), 'custos-clients-'));
  cpSync(join(import.meta.dirname, 'clients'), folder, { recursive: true });
  symlinkSync(join(judges, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'openapi.json'), openapi);
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

async function generate(folder: string, generator: keyof typeof generators): Promise<void> {
  await run(generator, generators[generator], { cwd: folder, env, timeout: 60_000 });
}

/** What the compiler says of the project's files. */
async function compilerErrors(folder: string): Promise<string[]> {
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { stdout } = await run(tsc, ['-p', folder], { cwd: folder, env, timeout: 60_000 }).catch(
    (error: { stdout: string }) => error,
  );
  return stdout.split('\n').filter((line) => line !== '');
}

test('clients from three generators compile against the document', { timeout: 120_000 }, async () => {
  using project = clientProject(document);
  const all = Object.keys(generators) as (keyof typeof generators)[];
  await Promise.all(all.map((generator) => generate(project.folder, generator)));
  expect(await compilerErrors(project.folder)).toEqual([]);
});

// Why the document has mappings: only the generators can change it, so once in a while is enough.
test.runIf(isLong)(
  'without its mappings, the document yields clients that cannot call `walletRpc`',
  {
    timeout: 120_000,
  },
  async () => {
    const unmapped = JSON.stringify(JSON.parse(document), (key, value) =>
      key === 'mapping' ? undefined : value,
    );
    using project = clientProject(unmapped);
    for (const client of ['hey-api-client.ts', 'orval-client.ts']) rmSync(join(project.folder, client));
    await generate(project.folder, 'openapi-typescript');
    expect((await compilerErrors(project.folder)).join('\n')).toContain(
      `Type '"personal_sign"' is not assignable to type '"AptosSignTransactionRpcInput" |`,
    );
  },
);
