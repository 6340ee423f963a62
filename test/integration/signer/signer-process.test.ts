import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { quorumReference } from '../../../src/engine/authorization/quorum-records.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { encodeFrame, frameKinds } from '../../../src/keys/frames.ts';
import { operationNames } from '../../../src/keys/protocol.ts';
import { openSignerKeyStore } from '../../../src/keys/signer-client.ts';
import { connectTo, connectToSocket, type SignerConnection } from '../../../src/keys/signer-connection.ts';
import { type StartedCustos, startCustos, temporaryFolder, waitFor } from '../../support/run-custos.ts';
import { ofKey } from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// `custos signer` as a process, and a server under an attacker's control that is connected to it.

const uid = process.getuid!();
const started: StartedCustos[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.stop('SIGKILL')));
});

function newPlace() {
  const folder = join(temporaryFolder(), 'signer');
  mkdirSync(folder, { mode: 0o700 });
  return { folder, path: join(folder, 'socket') };
}

type Settings = Record<string, string>;
const newKey = (): string => randomBytes(32).toString('hex');

async function startSigner(path: string, env: Settings): Promise<StartedCustos> {
  const signer = await startCustos(['signer', '--socket', path], { env });
  started.push(signer);
  await waitFor(() => signer.output().stdout.includes('"ready"') || signer.process.exitCode !== null);
  if (signer.process.exitCode !== null) throw new Error(signer.output().stderr);
  return signer;
}

async function attach(path: string): Promise<SignerConnection> {
  const signer = await connectTo(await connectToSocket({ path, uid }).stream);
  void signer.leaving.then(() => signer.finish());
  return signer;
}
const call = (
  signer: SignerConnection,
  name: (typeof operationNames)[number],
  parts: Uint8Array[],
  json: object,
) => signer.call(operationNames.indexOf(name), parts, json);

const owner = newOwner();
const record = ofKey(owner);
const authority = { owner: quorumReference(record.base), signers: [], isAutomated: false };
const binding = { purpose: 'ethereum', rowId: 'wallet', appId: 'acme' };

async function newWallet(signer: SignerConnection) {
  const { parts, json } = await call(signer, 'createWalletKey', [], { binding, authority });
  return { parts: [...parts], key: (json as { key: string }).key };
}
type Wallet = Awaited<ReturnType<typeof newWallet>>;

const friend = `0x${'11'.repeat(20)}`;
const payment = signedBy([owner], {
  path: '/v1/wallets/wallet/rpc',
  body: {
    method: 'eth_sendTransaction',
    caip2: 'eip155:1',
    params: { transaction: { to: friend, value: '0x1' } },
  },
  expiryMs: Date.now() + 600_000,
});
const pays = (signer: SignerConnection, { parts, key }: Wallet, nonce: number) =>
  call(signer, 'signWithWallet', parts, {
    ...{ key, binding, method: 'eth_signTransaction' },
    params: {
      transaction: {
        ...{ type: 2, to: friend, value: '0x1', chain_id: 1, nonce, gas_limit: '0x5208' },
        ...{ max_fee_per_gas: '0x3b9aca00', max_priority_fee_per_gas: '0x3b9aca00' },
      },
    },
    use: { authority, quorums: [record], userKeys: {}, evidence: payment },
  });

test('no frame ends it, and a signed payment stays one payment', async () => {
  const { path } = newPlace();
  const env = { CUSTOS_MASTER_KEY: newKey(), CUSTOS_SIGNATURES_PER_REQUEST: '1' };
  const process = await startSigner(path, env);
  const signer = await attach(path);
  const wallet = await newWallet(signer);
  await pays(signer, wallet, 0);
  await expect(pays(signer, wallet, 1)).rejects.toThrow('already signed for a transaction');

  const head = encodeFrame({ kind: frameKinds.call, id: 1, operation: 3, parts: [], json: undefined });
  const text = Buffer.concat([Buffer.from('{"purpose":"'), Buffer.alloc(3_000_000, 0xff), Buffer.from('"}')]);
  const frame = Buffer.concat([head, text]);
  frame.writeUInt32BE(frame.length - 4);
  const gone = (bytes: Uint8Array) =>
    new Promise<void>((resolve) => {
      const socket = connect({ path, allowHalfOpen: true }, () => socket.end(bytes));
      socket.resume();
      socket.on('error', () => undefined);
      socket.once('close', () => resolve());
    });
  await gone(frame);
  await gone(frame.subarray(0, 1_000_000));
  await gone(randomBytes(100_000));
  await Promise.all(Array.from({ length: 1_000 }, () => gone(head)));
  expect(process.process.exitCode).toBeNull();
  await expect(pays(signer, wallet, 1)).rejects.toThrow('already signed for a transaction');
  // The same transaction is no further payment.
  await expect(pays(signer, wallet, 0)).resolves.toBeDefined();
});

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'what was signed is still counted after an end by %s',
  async (signal) => {
    const { path, folder } = newPlace();
    const env = { CUSTOS_MASTER_KEY: newKey(), CUSTOS_SIGNATURES_PER_REQUEST: '1' };
    const before = await startSigner(path, env);
    const first = await attach(path);
    const wallet = await newWallet(first);
    await pays(first, wallet, 0);
    await before.stop(signal);
    const second = await startSigner(path, env).then(() => attach(path));
    for (const nonce of [1, 2, 3])
      await expect(pays(second, wallet, nonce)).rejects.toThrow('already signed for a transaction');
    await expect(pays(second, wallet, 0)).resolves.toBeDefined();
    expect(statSync(join(folder, 'spent-requests')).mode & 0o777).toBe(0o600);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  },
);

test('a second signer starts neither at the same socket nor with the same state', async () => {
  const { path, folder } = newPlace();
  const env = { CUSTOS_MASTER_KEY: newKey() };
  await startSigner(path, env);
  await expect(startSigner(path, env)).rejects.toThrow('another signer listens at');
  await expect(startSigner(join(folder, 'other'), env)).rejects.toThrow('another signer uses the folder');
});

describe('started by itself', () => {
  // Tried by the code of the signer, which runs what NODE_OPTIONS names before its own.
  test('it has no debugger, no secrets of the server, and may not write, start or read', async () => {
    const { path, folder } = newPlace();
    const env = { CUSTOS_MASTER_KEY: newKey(), DATABASE_URL: 'postgres://custos:hunter2@db/custos' };
    const signer = await startSigner(path, env);
    const { pid } = signer.process;
    const at = (name: string): string => readFileSync(`/proc/${pid}/${name}`, 'utf8');
    expect(at('environ')).not.toContain('hunter2');
    expect(at('environ')).not.toContain('DATABASE_URL');
    const flags = at('cmdline').split('\0');
    expect(flags).toContain('--permission');
    expect(flags).toContain('--disable-sigusr1');
    expect(flags.filter((flag) => flag.startsWith('--allow-fs-write'))).toEqual([
      `--allow-fs-write=${folder}`,
    ]);
    expect(flags.filter((flag) => /allow-(child|worker|wasi|inspector)/.test(flag))).toEqual([]);
    signer.process.kill('SIGUSR1');
    await pause(200);
    const connection = await attach(path);
    await newWallet(connection);
    expect(signer.output().stderr).not.toContain('Debugger');
    const fds = readdirSync(`/proc/${pid}/fd`).length;
    expect(fds).toBeLessThan(60);
  });
});

test('keys are rotated while a client works, without a refusal', async () => {
  const { path, folder } = newPlace();
  const [old, next] = [newKey(), newKey()];
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const under = (current: string, previous?: string): Settings => ({
    CUSTOS_MASTER_KEY_FILE: file('current', current),
    ...(previous === undefined ? {} : { CUSTOS_PREVIOUS_MASTER_KEYS_FILE: file('previous', previous) }),
  });
  let signer = await startSigner(path, under(old));
  const server = await openSignerKeyStore(() => connectToSocket({ path, uid }), { log: silentLog });
  const checked: string[] = [];
  const webhook = { ...binding, purpose: 'webhook-secret' };
  const seal = () => server.keyStore.seal(Buffer.from('secret'), webhook);
  const first = await seal();
  server.checkKeysBy(async (keyStore) => {
    await keyStore.open(first, webhook);
    checked.push(keyStore.currentMasterKeyId);
  });
  const secrets = [first];
  let isWorking = true;
  const working = (async () => {
    while (isWorking) {
      secrets.push(await seal());
      await server.keyStore.open(secrets.at(-2)!, webhook);
      await pause(2);
    }
  })();
  for (const keys of [
    [old, next],
    [next, old],
  ] as const) {
    await signer.stop('SIGTERM');
    signer = await startSigner(path, under(...keys));
    const count = secrets.length;
    await waitFor(() => secrets.length > count + 20);
  }
  isWorking = false;
  await working;
  const used = new Set(secrets.map(({ masterKeyId }) => masterKeyId));
  // Once with the next key beside the old one, once in its place.
  expect(checked).toEqual([...used]);
  expect(used.size).toBe(2);
  // Without the old key, the first secret does not open: that signer is not used.
  await signer.stop('SIGTERM');
  await startSigner(path, under(next));
  await pause(500);
  expect(isUnavailable(await server.check().catch((error: unknown) => error))).toBe(true);
  await server.close();
});

test('a signer that is stopped is not ready', async () => {
  const { path } = newPlace();
  const signer = await startSigner(path, { CUSTOS_MASTER_KEY: newKey() });
  const server = await openSignerKeyStore(() => connectToSocket({ path, uid }), { log: silentLog });
  await server.check();
  signer.process.kill('SIGSTOP');
  await pause(1_000);
  await expect(server.check()).rejects.toThrow('has not answered for 2000 ms');
  signer.process.kill('SIGCONT');
  await expect.poll(() => server.check().then(() => 'ready', String), { timeout: 30_000 }).toBe('ready');
  await server.close();
});
