import { execFile, execFileSync, spawn } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { recoverMessageAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startSandbox as startInProcess } from '../../../src/testing/testing.ts';
import { call } from '../../support/call.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { runCommand, temporaryFolder, waitFor } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import { clientsFolder, languages } from '../clients/languages.ts';

// Runs the code of docs/guides/ as a reader would: blocks become files of a folder, commands run in it. Only the base
// URL and the paths of node are substituted. The server decides whether payloads and signatures are right.
const root = join(import.meta.dirname, '..', '..', '..');
const guides = globSync('docs/guides/*.md', { cwd: root }).map((path) => ({
  path,
  text: readFileSync(join(root, path), 'utf8'),
}));
const run = promisify(execFile);

interface Block {
  readonly name: string | undefined;
  readonly language: string;
  readonly code: string;
}

const blocks: Block[] = guides.flatMap(({ text }) =>
  [...text.matchAll(/(?:<!-- test: ([\w.-]+) -->\n)?```(\w*)\n([\s\S]*?)```/g)].map(
    ([, name, language = '', code = '']) => ({ name, language, code }),
  ),
);
const used = new Set<string>();

function block(name: string): string {
  const found = blocks.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no guide has a block \`${name}\``);
  used.add(name);
  return found.code.replaceAll('https://127.0.0.1:4010', sandbox.baseUrl);
}

let sandbox: TestSandbox;
let folder: string;
/** Why the client for TypeScript cannot be built. */
let noClient: string | undefined;
beforeAll(async () => {
  folder = temporaryFolder();
  sandbox = await startSandbox({ seed: 'demo', dataFolder: join(folder, '.custos'), hints: true });
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(join(clientsFolder, 'typescript'), join(folder, 'node_modules/custos-client'));
  const { missing, build } = languages.find(({ name }) => name === 'typescript')!;
  noClient = await missing();
  if (noClient === undefined) await build();
  for (const name of ['custos.ts', 'first.ts', 'first.py', 'first.go', 'First.java']) {
    writeFileSync(join(folder, name), block(name));
  }
  await shell(block('alice'));
}, 600_000);
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs commands in the reader's folder. */
async function shell(code: string): Promise<string> {
  const adapted = code
    .replaceAll('npx node', `'${process.execPath}'`)
    .replaceAll('curl --cacert', 'curl --silent --cacert');
  return (await run('sh', ['-ec', adapted], { cwd: folder })).stdout;
}

/**
 * Writes a block to the file of its name, with `more` at its end, and runs it by the command of another block. Returns
 * undefined without the client.
 */
async function runScript(file: string, command: string, more = ''): Promise<string | undefined> {
  writeFileSync(join(folder, file), block(file) + more);
  const code = block(command);
  return isWithoutClient(file) ? undefined : shell(code);
}

function isWithoutClient(name: string): boolean {
  if (noClient !== undefined) process.stderr.write(`${name} did not run: ${noClient}\n`);
  return noClient !== undefined;
}

/** Why an example cannot run here; undefined if it can. */
function missing(command: string, ...args: string[]): string | undefined {
  try {
    execFileSync(command, args, { stdio: 'ignore', timeout: 20_000 });
    return undefined;
  } catch {
    return `\`${command}\` is not installed, or lacks a package`;
  }
}

describe("the first request signs with Alice's wallet", () => {
  test.each([
    ['first-curl', missing('openssl', 'version')],
    ['first-typescript', undefined],
    ['first-python', missing('python3', '-c', 'import cryptography, requests')],
    ['first-go', missing('go', 'version')],
    // The Java machine compiles the file first, which takes seconds.
    [
      'first-java',
      process.env.TEST_LONG === undefined ? 'only with TEST_LONG=1' : missing('java', '-version'),
    ],
  ])('%s', { timeout: 120_000 }, async (name, reason) => {
    const code = block(name);
    if (reason !== undefined) return void process.stderr.write(`${name} did not run: ${reason}\n`);
    if (name === 'first-typescript' && isWithoutClient(name)) return;
    const printed = JSON.parse(await shell(code)) as { data: { signature: `0x${string}` } };
    expect(printed).toEqual(JSON.parse(block('first-output')));
    const { address } = (await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_alice' } })).body;
    expect(await recoverMessageAddress({ message: 'Hello', signature: printed.data.signature })).toBe(
      address,
    );
  });
});

test('a quorum of two refuses one signature, accepts two, and completes an intent', async () => {
  const printed = await runScript('quorum.ts', 'quorum', block('intent.ts'));
  const output = block('quorum-output');
  if (printed === undefined) return;
  expect(printed).toBe(`${output}pending\npending\nexecuted\n`);
});

test('the policy allows its limit and explains what is above', async () => {
  const printed = await runScript('policy.ts', 'policy');
  const output = block('policy-output');
  if (printed === undefined) return;
  const withoutId = (text: string) => text.replace(/\(`\w+`\)/, '');
  expect(withoutId(printed)).toBe(withoutId(output));
});

test('the policy has the gap that the guide names', async () => {
  const [, policy] = /createPolicy\(\{\s+body: (\{[\s\S]*?\n {2}\}),\n\}\);/.exec(block('policy.ts')) ?? [];
  const printPolicy = `console.log(JSON.stringify(${policy}))`;
  writeFileSync(join(folder, 'policy.json'), execFileSync(process.execPath, ['-e', printPolicy]));
  const [, command = ''] = /npx custos (.*)/.exec(block('policy-lint')) ?? [];
  const args = command
    .replace('policy.json', join(folder, 'policy.json'))
    .replace('.custos', join(folder, '.custos'));
  const { code, stdout } = await runCommand(args.split(' '));
  expect([code, stdout.match(/^\w+(?=:)/gm)]).toEqual([1, ['token_transfer']]);
});

/** A port that was free a moment ago. */
async function freePort(): Promise<string> {
  await using receiver = await startWebhookReceiver();
  return new URL(receiver.url).port;
}

test('the receiver accepts what the sandbox signed, and nothing else', async () => {
  const { address } = (await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_acme-solana' } })).body;
  const port = await freePort();
  const atPort = (code: string) => code.replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`);
  const endpoint = JSON.parse(await shell(atPort(block('endpoint')))) as { secret: string };
  writeFileSync(join(folder, 'receiver.ts'), block('receiver.ts').replace('listen(3000)', `listen(${port})`));
  expect(block('receive')).toBe('WEBHOOK_SECRET=whsec_… npx node receiver.ts\n');
  const cause = block('cause');
  if (isWithoutClient('receiver.ts')) return;
  const env = { ...process.env, WEBHOOK_SECRET: endpoint.secret };
  const receiver = spawn(process.execPath, ['receiver.ts'], { cwd: folder, env });
  let printed = '';
  receiver.stdout.on('data', (text: Buffer) => {
    printed += text;
  });
  try {
    const post = () => fetch(`http://127.0.0.1:${port}/hook`, { method: 'POST', body: '{}' });
    await vi.waitFor(async () => expect((await post()).status).toBe(401), { timeout: 20_000 });
    await shell(`${block('endpoint').split('\n')[0]}\n${cause}`);
    await sandbox.settle();
    await waitFor(() => printed.includes('\n'));
    expect(printed).toMatch(/^wallet\.archived \{"type":"wallet\.archived"/);
    expect(printed).toContain(address);
  } finally {
    receiver.kill();
  }
});

const noPython = missing('python3', '--version');

test.skipIf(noPython)('the Python function accepts an event, and no changed one', async () => {
  writeFileSync(join(folder, 'verify.py'), block('verify.py'));
  const secret = `whsec_${Buffer.from('a key that both sides have').toString('base64')}`;
  // Signed by a library of others.
  const body = '{"type":"wallet.archived","name":"Zoë"}';
  const now = new Date();
  const signature = new Webhook(secret).sign('msg_1', now, body);
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': `v1,AAAA ${signature}`,
  };
  const late = { ...headers, 'webhook-timestamp': String(Math.floor(now.getTime() / 1000) - 301) };
  const verify = (...given: unknown[]) => `
try:
    verify(${given.map((each) => JSON.stringify(each)).join(', ')}.encode())
    print('accepted')
except ValueError as error:
    print(error)
`;
  const cases = [
    verify(secret, headers, body),
    verify(secret, headers, body.replace('Zoë', 'Zoe')),
    verify(secret, late, body),
  ];
  const { stdout } = await run('python3', ['-c', `from verify import verify\n${cases.join('')}`], {
    cwd: folder,
  });
  expect(stdout).toBe('accepted\nno signature matches\nthe timestamp is off by more than five minutes\n');
});

test('the strict rules of production can be set in the sandbox', async () => {
  const { settings } = JSON.parse(await shell(block('safeguards'))) as { settings: object };
  expect(settings).toMatchObject({ require_request_expiry: 1200, single_use_signatures: true });
});

test('a production server is set up as the guide says', async () => {
  const lines = block('production').trim().split('\n');
  const help = (await runCommand(['serve', '--help'])).stdout;
  const settings = lines.flatMap((line) => [...line.matchAll(/([A-Z_]+)=/g)].map(([, name = '']) => name));
  expect(settings.filter((name) => !help.includes(name))).toEqual([]);
  expect(settings).toContain('CUSTOS_PUBLIC_URLS');
  const commands = lines.flatMap((line) => /^npx custos (.*)$/.exec(line)?.[1] ?? []);
  expect(commands).toEqual(['migrate', "apps create --name 'Acme'", 'serve']);
  const masterKey = execFileSync('sh', ['-c', /; (openssl .*) >/.exec(lines[1]!)![1]!]);
  const env = { DATABASE_URL: await freshPostgres(), CUSTOS_MASTER_KEY: masterKey.toString().trim() };
  expect(await runCommand(['migrate'], { env })).toMatchObject({ code: 0 });
  const created = await runCommand(['apps', 'create', '--name', 'Acme'], { env });
  expect(created).toMatchObject({ code: 0, stderr: '' });
});

test('a hosted app moves as the guide says', async () => {
  const config = join(folder, 'custos.config.json');
  writeFileSync(config, block('move-config'));
  await using own = await startInProcess({ config });
  const till = await own.call('getWallet', { path: { wallet_id: 'ext_wal_till' } });
  const owner = await own.call('getKeyQuorum', { path: { key_quorum_id: till.owner_id! } });
  expect(owner.user_ids).toEqual([expect.stringMatching(/^did:acme:/)]);
  expect((await own.signIn('dana')).userId).toBe(owner.user_ids![0]);
  const names = ['move-commands', 'move-tests', 'move-verify'];
  const commands = names.flatMap((name) => block(name).trim().split('\n'));
  for (const command of commands) {
    const [, , ...words] = command.split(' -- ')[0]!.split(' ');
    const path = words[0] === 'faults' ? words.slice(0, 2) : words.slice(0, 1);
    const help = (await runCommand([...path, '--help'])).stdout;
    const options = words.filter((word) => word.startsWith('--'));
    expect(help).toContain(`Usage: custos ${path.join(' ')}`);
    expect(options.filter((option) => !help.includes(option))).toEqual([]);
  }
});

// What a block only shows.
const shown = new Set([
  'npm ci && npm start -- --seed demo --seed-data --data .custos',
  'npx custos sandbox --seed demo --seed-data --data .custos',
  '{"body":{…},',
  '(cd clients/typescript && npm ci && npm run build)',
]);

test('every block of the guides is run', () => {
  const unmarked = blocks.filter(
    ({ name, code }) => name === undefined && ![...shown].some((text) => code.startsWith(text)),
  );
  expect(unmarked.map(({ code }) => code)).toEqual([]);
  const unused = blocks.flatMap(({ name }) => (name === undefined || used.has(name) ? [] : [name]));
  expect(unused).toEqual(noPython === undefined ? [] : ['verify.py']);
});
