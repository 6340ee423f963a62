import { execFile, execFileSync } from 'node:child_process';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { sampleLanguages } from '../../../src/web/docs/code-samples.ts';
import { firstValue, sampleOf, withIds } from '../../../src/web/docs/compose-request.ts';
import type { OperationDocument, Settings } from '../../../src/web/docs/operation-document.ts';
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Runs the code of the pages of operations as a reader would: it is saved as the file of its name, next to the keys,
// and started. The server decides whether the request and its signatures are right.
const root = join(import.meta.dirname, '..', '..', '..');
const run = promisify(execFile);

let sandbox: TestSandbox;
let folder: string;
beforeAll(async () => {
  folder = temporaryFolder();
  sandbox = await startSandbox({ hints: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  for (const [name, { privateKey }] of Object.entries({ alice: aliceKey, bob: bobKey })) {
    const pem = `-----BEGIN PRIVATE KEY-----\n${privateKey}\n-----END PRIVATE KEY-----\n`;
    writeFileSync(join(folder, `${name}.pem`), pem);
  }
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function read<Value>(path: string): Promise<Value> {
  const { body } = await sandbox.dispatcher.request({ origin: sandbox.baseUrl, path, method: 'GET' });
  return (await body.json()) as Value;
}

interface Change {
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly keyFiles?: readonly string[];
}

/** The code of an operation, after the reader changed the form. */
async function codeOf(id: string, language: string, { parameters = {}, body, keyFiles = [] }: Change) {
  const operation = await read<OperationDocument>(`/docs/operations/${id}.json`);
  const settings = await read<Settings>('/docs/settings.json');
  const [content] = Object.values(operation.requestBody?.content ?? {});
  const [example] = Object.values(content?.examples ?? {});
  const filled = {
    parameters: Object.fromEntries(
      operation.parameters.map((each) => [each.name, parameters[each.name] ?? firstValue(each, settings)]),
    ),
    body: content === undefined ? undefined : JSON.stringify(body ?? withIds(example?.value, settings.ids)),
    ...{ userToken: '', ...settings.credentials! },
  };
  const { write, file } = sampleLanguages.find((each) => each.id === language)!;
  return {
    file,
    code: write(sampleOf(operation, filled, { ...settings, origin: sandbox.baseUrl }, keyFiles)),
  };
}

const commands: Readonly<Record<string, (file: string) => [string, string[]]>> = {
  sh: (file) => ['sh', [file]],
  ts: (file) => [process.execPath, [file]],
  python: (file) => ['python3', [file]],
  go: (file) => ['go', ['run', file]],
  java: (file) => ['java', [file]],
};

/** Why a language cannot run here; undefined if it can. */
function missing(language: string): string | undefined {
  // The Java machine compiles each file first, which takes seconds.
  if (language === 'java' && process.env.TEST_LONG === undefined) return 'only with TEST_LONG=1';
  const probes: Readonly<Record<string, readonly [string, ...string[]]>> = {
    sh: ['openssl', 'version'],
    python: ['python3', '-c', 'import cryptography, requests'],
    go: ['go', 'version'],
    java: ['java', '-version'],
  };
  const [command, ...args] = probes[language] ?? [process.execPath, '--version'];
  try {
    execFileSync(command, args, { stdio: 'ignore', timeout: 20_000 });
    return undefined;
  } catch {
    return `\`${command}\` is not installed, or lacks a package`;
  }
}

const message = {
  method: 'personal_sign',
  params: { message: 'Zoë\'s "key" <b> & `c` \\ ✓', encoding: 'utf-8' },
};
const treasury = { parameters: { wallet_id: 'ext_wal_treasury' }, body: message };
const alice = { parameters: { wallet_id: 'ext_wal_alice' }, body: message, keyFiles: ['alice.pem'] };

const cases: readonly [string, string, Change, object][] = [
  ['without a body', 'getWallet', {}, { chain_type: 'ethereum' }],
  ['with a query', 'listWallets', { parameters: { limit: '2' } }, { data: [{}, {}] }],
  ['with a body', 'createPolicy', {}, { version: '1.0' }],
  ['signed by the owner', 'walletRpc', alice, { data: { encoding: 'hex' } }],
  [
    'signed with the optional headers',
    'walletRpc',
    {
      ...alice,
      parameters: {
        ...alice.parameters,
        'service-idempotency-key': "it's 1",
        'service-request-expiry': '1767229200000',
      },
    },
    { data: { encoding: 'hex' } },
  ],
  [
    'signed by a quorum',
    'walletRpc',
    { ...treasury, keyFiles: ['alice.pem', 'bob.pem'] },
    { data: { encoding: 'hex' } },
  ],
  ['refused without a signature', 'walletRpc', treasury, { code: 'missing_or_empty_authorization_header' }],
  ['signed without a body', 'deletePolicy', {}, { success: true }],
];

// The other requests take half a minute in all languages.
const short = ['with a query', 'signed with the optional headers', 'signed without a body'];
const chosen = cases.filter(([title]) => process.env.TEST_LONG !== undefined || short.includes(title));

describe.each(sampleLanguages.map(({ id, title }) => [title, id]))('%s', (_title, language) => {
  const reason = missing(language);
  test.skipIf(reason !== undefined).each(chosen)(
    'a request %s is understood',
    { timeout: 60_000 },
    async (title, operation, change, answer) => {
      const owned =
        title === 'signed without a body'
          ? { parameters: { policy_id: await ownedPolicy() }, keyFiles: ['alice.pem'] }
          : change;
      const { file, code } = await codeOf(operation, language, owned);
      writeFileSync(join(folder, file), code);
      const [command, args] = commands[language]!(file);
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: sandbox.caFile, NO_COLOR: '1' };
      const { stdout } = await run(command, args, { cwd: folder, env });
      expect(JSON.parse(stdout)).toMatchObject(answer);
    },
  );
});

/** A policy that only Alice can delete. */
async function ownedPolicy(): Promise<string> {
  const settings = await read<Settings>('/docs/settings.json');
  const { appId, appSecret } = settings.credentials!;
  const { body } = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: '/v1/policies',
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa(`${appId}:${appSecret}`)}`,
      'service-app-id': appId,
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      ...{ version: '1.0', name: 'Owned', chain_type: 'ethereum', rules: [] },
      owner: { public_key: aliceKey.publicKey },
    }),
  });
  return ((await body.json()) as { id: string }).id;
}
