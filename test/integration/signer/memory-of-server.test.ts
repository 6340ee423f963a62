import { execFile, execFileSync } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { generateMnemonic } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { SignJWT } from 'jose';
import { mnemonicToAccount, privateKeyToAccount } from 'viem/accounts';
import { beforeAll, expect, test } from 'vitest';
import { makeRecipient, type Sealed, sealTo } from '../../contract/wallets/keys/hpke-client.ts';
import { isLong } from '../../figures/figure.ts';
import { runCommand, temporaryFolder, waitFor } from '../../support/run-custos.ts';
import { openedSecrets } from '../../support/signer/opened-secrets.ts';
import { newOwner, payloadOf, signPayload } from '../../support/signer/owner.ts';
import { formsOf, searchIn, searchInFile, textForms } from '../../support/signer/search-bytes.ts';
import { type ServedWithSigner, serveWithSigner } from '../../support/signer/serve-with-signer.ts';

// The proof that the HTTP process has no key: a core dump and a heap snapshot of it, after keys of every kind were
// drawn, imported, exported and used, are searched for all of them in every form.

const run = promisify(execFile);
const folder = temporaryFolder();

const login = generateKeyPairSync('ec', { namedCurve: 'P-256' });

let server: ServedWithSigner;
beforeAll(async () => {
  if (!isLong) return;
  server = await serveWithSigner({
    login: login.publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    nodeOptions: [
      ...['--heapsnapshot-signal=SIGUSR2', `--diagnostic-dir=${folder}`],
      // Texts as a whole, not their beginnings.
      '--heap-snapshot-string-limit=100000000',
    ],
  });
  return async () => {
    await server.end();
    rmSync(folder, { recursive: true, force: true });
  };
});

type Answer = Record<string, never>;

/** Sends a request that must succeed; `by` signs it. */
async function ask(path: string, body?: object, by?: Parameters<typeof signPayload>[0]): Promise<Answer> {
  const expiryMs = Date.now() + 60_000;
  const headers =
    by === undefined || body === undefined
      ? {}
      : {
          'service-request-expiry': String(expiryMs),
          'service-authorization-signature': signPayload(
            by,
            payloadOf({ path, body, appId: server.app.id, expiryMs }),
          ),
        };
  const answer = await server.call(path, body, headers);
  expect({ path, status: answer.status, body: answer.status === 200 ? {} : answer.body }).toEqual({
    ...{ path, status: 200, body: {} },
  });
  return answer.body;
}

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
const raw = { params: { hash: `0x${'12'.repeat(32)}` } };

async function importWallet(begun: object, secret: Uint8Array): Promise<Answer> {
  const declared = { chain_type: 'ethereum', encryption_type: 'HPKE', ...begun };
  const { encryption_public_key: point } = await ask('/v1/wallets/import/init', declared);
  return ask('/v1/wallets/import/submit', { wallet: { ...declared, ...(await sealTo(point!, secret)) } });
}

/** The text of an export. */
async function exportWallet({ id }: Answer, form: object = {}): Promise<string> {
  const recipient = makeRecipient();
  const body = { encryption_type: 'HPKE', recipient_public_key: recipient.spki, ...form };
  return recipient.open((await ask(`/v1/wallets/${id}/export`, body)) as unknown as Sealed);
}

async function configure(settings: object): Promise<void> {
  const args = ['apps', 'configure', server.app.id, '--settings', JSON.stringify(settings)];
  expect((await runCommand(args, { env: server.env })).code).toBe(0);
}

/** Draws, imports, exports and uses keys of every kind. Result: what only the caller and the signer may know. */
async function useKeys(): Promise<{ secrets: Map<string, Uint8Array>; texts: Map<string, string> }> {
  const secrets = new Map<string, Uint8Array>();
  const texts = new Map<string, string>();

  const drawn = await ask('/v1/wallets', { chain_type: 'ethereum' });
  const solana = await ask('/v1/wallets', { chain_type: 'solana' });
  const bitcoin = await ask('/v1/wallets', { chain_type: 'bitcoin-segwit' });
  const imported = randomBytes(32);
  const { address } = privateKeyToAccount(`0x${imported.toString('hex')}`);
  const ofKey = await importWallet({ address, entropy_type: 'private-key' }, imported);
  secrets.set('imported key', imported);
  const phrase = generateMnemonic(wordlist);
  const account = mnemonicToAccount(phrase, { addressIndex: 3 });
  const declared = { address: account.address, entropy_type: 'hd', index: 3 };
  const ofPhrase = await importWallet(declared, Buffer.from(phrase));
  texts.set('imported phrase', phrase);
  secrets.set('key of the imported phrase', account.getHdKey().privateKey!);

  const owner = newOwner();
  const owned = await ask('/v1/wallets', {
    chain_type: 'ethereum',
    owner: { public_key: owner.publicKey },
  });
  const rules = [{ name: 'all', method: '*', conditions: [], action: 'ALLOW' }];
  const policy = { version: '1.0', name: 'all', chain_type: 'ethereum', rules };
  await ask('/v1/policies', { ...policy, owner: { public_key: owner.publicKey } });

  const message = { method: 'signMessage', params: { message: 'aGVsbG8=', encoding: 'base64' } };
  for (let count = 0; count < 5; count += 1) {
    for (const { id } of [drawn, ofKey, ofPhrase]) await ask(`/v1/wallets/${id}/rpc`, hello);
    await ask(`/v1/wallets/${solana.id}/rpc`, message);
    await ask(`/v1/wallets/${bitcoin.id}/raw_sign`, raw);
  }
  await ask(`/v1/wallets/${owned.id}/rpc`, hello, owner);

  for (const [name, wallet] of Object.entries({ drawn, solana, ofKey })) {
    texts.set(`export of ${name}`, (await exportWallet(wallet)).replace(/^0x/, ''));
  }
  texts.set('exported phrase', await exportWallet(drawn, { export_seed_phrase: true }));

  // A user's key, which the signer draws, and which signs in the client.
  const code = { email: 'ann@acme.example', phone_number: '+12025550123', otp_code: '482913' };
  await configure({ test_accounts: [code], block_test_logins: false });
  const user = await ask('/v1/users', { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'ann' }] });
  const ofUser = await ask('/v1/wallets', { chain_type: 'ethereum', owner: { user_id: user.id } });
  const user_jwt = await new SignJWT({ sub: 'ann' })
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
    .setExpirationTime('1h')
    .sign(login.privateKey);
  for (let count = 0; count < 2; count += 1) {
    const recipient = makeRecipient();
    const asked = { user_jwt, encryption_type: 'HPKE', recipient_public_key: recipient.spki };
    const { encrypted_authorization_key: sealed } = await ask('/v1/wallets/authenticate', asked);
    const text = await recipient.open(sealed!);
    const privateKey = createPrivateKey({
      ...{ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' },
    });
    await ask(`/v1/wallets/${ofUser.id}/rpc`, hello, { privateKey, publicKey: '' });
    texts.set(`user key ${count}`, text);
    secrets.set(
      `scalar of user key ${count}`,
      Buffer.from(privateKey.export({ format: 'jwk' }).d!, 'base64url'),
    );
  }
  // A token that the app's key signs.
  await ask('/v1/passwordless/authenticate', { email: code.email, code: code.otp_code });
  return { secrets, texts };
}

/** A core dump of a process, or undefined where the system does not permit one. */
async function coreOf(pid: number): Promise<string | undefined> {
  try {
    await run('gcore', ['-o', join(folder, 'core'), String(pid)], { timeout: 120_000 });
  } catch {
    return undefined;
  }
  return join(folder, `core.${pid}`);
}

/** The texts of the heap of the server, and what else its snapshot names. */
async function heapTexts(pid: number): Promise<Buffer> {
  process.kill(pid, 'SIGUSR2');
  const written = () => readdirSync(folder).find((name) => name.endsWith('.heapsnapshot'));
  let before = -1;
  await waitFor(() => {
    const name = written();
    if (name === undefined) return false;
    const { size } = statSync(join(folder, name));
    const isComplete = size > 0 && size === before && endsWithBrace(join(folder, name));
    before = size;
    return isComplete;
  }, 120_000);
  const snapshot = JSON.parse(readFileSync(join(folder, written()!), 'utf8')) as { strings: string[] };
  return Buffer.from(snapshot.strings.join('\n'), 'latin1');
}

function endsWithBrace(path: string): boolean {
  const bytes = readFileSync(path);
  return bytes.subarray(-2).toString().trim().endsWith('}');
}

function hasGcore(): boolean {
  try {
    execFileSync('gcore', ['--help'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

test('neither a core dump nor a heap snapshot of the server has a key', async ({ skip }) => {
  skip(!isLong, 'takes twenty seconds: TEST_LONG=1');
  skip(process.platform !== 'linux', 'needs /proc');
  skip(!hasGcore(), 'needs gcore, which is part of gdb');
  const { secrets, texts } = await useKeys();
  const sealed = await openedSecrets(server.databaseUrl, server.masterKey);
  const all = [...secrets, ...sealed.secrets, ['master key', server.masterKey] as const];
  const wanted = new Map([
    ...all.flatMap(([name, secret]) => formsOf(name, secret)),
    ...[...texts, ...sealed.phrases].flatMap(([name, text]) => textForms(name, text)),
    // What the server has: the search would find a key there.
    ['database', Buffer.from(server.databaseUrl)] as const,
  ]);
  for (const kind of [
    'wallet_keys',
    'app_signing_keys',
    'audit_keys',
    'policy_seals',
    'voucher_keys',
    'entropy',
    'seed',
  ]) {
    expect(
      [...sealed.secrets.keys()].some((name) => name.includes(kind)),
      kind,
    ).toBe(true);
  }

  const core = await coreOf(server.process.pid!);
  const coreOfSigner = await coreOf(server.signerPid());
  skip(core === undefined || coreOfSigner === undefined, 'this system permits no core dump of a process');
  expect([...searchInFile(coreOfSigner!, wanted)]).toContain('master key');
  expect([...searchInFile(core!, wanted)]).toEqual(['database']);
  expect([...searchIn(await heapTexts(server.process.pid!), wanted)]).toEqual(['database']);
}, 300_000);
