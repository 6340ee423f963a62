import { randomBytes } from 'node:crypto';
import { type Duplex, duplexPair } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test, vi } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { hpkeRecipientFromSeed, openHpke, sealHpke } from '../../../src/engine/crypto/hpke.ts';
import {
  InvalidSolanaTransactionError,
  type SigningInputError,
  UnsupportedMethodError,
} from '../../../src/engine/signing/signing-errors.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { encodeFrame, frameKinds } from '../../../src/keys/frames.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import { serveConnection } from '../../../src/keys/serve-connection.ts';
import { openSignerKeyStore } from '../../../src/keys/signer-client.ts';
import { connectTo } from '../../../src/keys/signer-connection.ts';

const masterKeyBytes = randomBytes(32);
const keyStoreInside = () =>
  createKeyStore({
    masterKeys: [localMasterKey('test', masterKeyBytes, systemEntropy)],
    entropy: systemEntropy,
  });

/** A signer at the other end of a stream in this process. */
function signer(masterKeyIds = ['test']) {
  const reported: object[] = [];
  const streams: Duplex[] = [];
  let opened = 0;
  const open = () => {
    opened += 1;
    const [ours, its] = duplexPair();
    streams.push(its);
    serveConnection(its, {
      keyStore: keyStoreInside(),
      masterKeyIds,
      report: (fields) => reported.push(fields),
    });
    return { stream: Promise.resolve(ours), end: async () => void ours.destroy() };
  };
  return { open, reported, opened: () => opened, kill: () => streams.at(-1)!.destroy() };
}

const binding = { purpose: 'ethereum', rowId: 'wallet', appId: 'acme' };
const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;

test('a signer elsewhere does what the key store itself does, and returns its errors', async () => {
  const { open, reported } = signer();
  const { keyStore, close } = await openSignerKeyStore(open, { log: silentLog });
  const direct = keyStoreInside();
  const { sealed, address } = await keyStore.createWalletKey(binding);
  expect(await keyStore.signWithWallet(sealed, binding, hello)).toEqual(
    await direct.signWithWallet(sealed, binding, hello),
  );

  const { privateKeyBytes, publicKeyBytes } = await hpkeRecipientFromSeed(randomBytes(32));
  const exported = await keyStore.exportWalletKey(sealed, binding, {
    ...{ form: 'private-key', recipient: publicKeyBytes },
  });
  const text = Buffer.from(await openHpke({ recipientPrivateKeyBytes: privateKeyBytes, ...exported! }));
  const hex = text.toString().replace(/^0x/, '');
  expect(privateKeyToAccount(`0x${hex}`).address).toBe(address);

  const begun = await keyStore.createImportKey({ ...binding, rowId: 'import' });
  const message = { recipientPublicKeyBytes: begun.publicKey, ephemeralSeed: randomBytes(32) };
  const submit = async (plaintext: Uint8Array, info = 'info') => {
    const sent = await sealHpke({ ...message, plaintext }, { aead: 'AES_GCM256', info: Buffer.from('info') });
    const parameters = { aead: 'AES_GCM256', info: Buffer.from(info) } as const;
    const submitted = { ...sent, parameters, form: 'private-key' } as const;
    return keyStore.importWalletKey(begun.sealed, { ...binding, rowId: 'import' }, submitted, binding);
  };
  expect((await submit(Buffer.from(hex, 'hex'))).address).toBe(address);
  await expect(submit(Buffer.from(hex, 'hex'), 'other')).rejects.toThrow('cannot be decrypted');
  await expect(submit(Buffer.from('short'))).rejects.toThrow('is not a private key of ethereum');

  const webhook = { ...binding, purpose: 'webhook-secret' };
  const secret = await keyStore.seal(Buffer.from('secret'), webhook);
  expect(Buffer.from(await keyStore.open(await keyStore.rewrap(secret, webhook), webhook)).toString()).toBe(
    'secret',
  );
  await expect(keyStore.open(sealed, binding)).rejects.toThrow('does not leave the key store');
  const fingerprints = { ...binding, purpose: 'fingerprint-key' };
  const key = await keyStore.createFingerprintKey(fingerprints);
  expect(await keyStore.fingerprint(key, fingerprints, 'ü')).toBe(
    await direct.fingerprint(key, fingerprints, 'ü'),
  );
  const tokens = { ...binding, purpose: 'app-signing-key' };
  expect(await keyStore.signToken((await keyStore.createTokenKey(tokens)).sealed, tokens, 'x')).toHaveLength(
    64,
  );
  expect((await keyStore.createUserKey(undefined)).privateKey).toEqual(expect.any(String));
  expect((await keyStore.createUserKey(publicKeyBytes)).privateKey).toHaveProperty('ciphertext');

  const solana = { ...binding, purpose: 'solana' };
  const { sealed: other } = await keyStore.createWalletKey(solana);
  const broken = { method: 'signTransaction', params: { transaction: 'AAAA', encoding: 'base64' } } as const;
  const refusal = await keyStore.signWithWallet(other, solana, broken).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(InvalidSolanaTransactionError);
  const unsupported = { method: 'raw_sign', params: { hash: '0x00' } } as const;
  const spark = { ...binding, purpose: 'spark' };
  const { sealed: sparkKey } = await keyStore.createWalletKey(spark);
  const method = await keyStore.signWithWallet(sparkKey, spark, unsupported).catch((error: unknown) => error);
  expect(method).toBeInstanceOf(UnsupportedMethodError);
  expect((method as SigningInputError).field).toBe('/method');
  // What is unexpected is reported by its kind only.
  const nonsense = { method: 'eth_signTransaction', params: null } as never;
  await expect(keyStore.signWithWallet(sealed, binding, nonsense)).rejects.toThrow('the signer failed');
  expect(reported).toEqual([{ operation: 'signWithWallet', error: 'TypeError' }]);
  await close();
});

test('a signer that ends is replaced; calls until then are refused as unavailable', async () => {
  const { open, opened, kill } = signer();
  const { keyStore, check, close } = await openSignerKeyStore(open, { log: silentLog });
  const { sealed } = await keyStore.createWalletKey(binding);
  const inFlight = keyStore.createWalletKey(binding).catch((error: unknown) => error);
  kill();
  expect(isUnavailable(await inFlight)).toBe(true);
  await expect(check()).rejects.toThrow('is being restarted');
  expect(isUnavailable(await keyStore.signWithWallet(sealed, binding, hello).catch((error) => error))).toBe(
    true,
  );
  while (
    await check().then(
      () => false,
      () => true,
    )
  )
    await pause(10);
  expect(opened()).toBe(2);
  expect(await keyStore.signWithWallet(sealed, binding, hello)).toHaveProperty('signature');
  await close();
  expect(opened()).toBe(2);
});

test('a signer with other master keys is not used', async () => {
  const [first, other] = [signer(), signer(['test', 'another'])];
  let isFirst = true;
  const open = () => (isFirst ? first.open() : other.open());
  const { check, close } = await openSignerKeyStore(open, { log: silentLog });
  isFirst = false;
  first.kill();
  while (other.opened() < 2) await pause(10);
  await expect(check()).rejects.toThrow('is being restarted');
  await close();
});

test('contracts of a server that its signer lacks are named at the start, and whenever the signer is back', async () => {
  const warned: object[] = [];
  let returns = 0;
  const log = {
    ...silentLog,
    warn: (fields: object) => void ('missing' in fields && warned.push(fields)),
    info() {
      returns += 1;
    },
  };
  const [one, other] = ['router eip155:1=0x1', 'reward distributor eip155:1=0x2'];
  const greeting = { currentMasterKeyId: 'test', masterKeyIds: ['test'] };
  const hellos = [
    { ...greeting, contracts: [one, 'router eip155:10=0x1'] },
    { ...greeting, contracts: [one, other] },
    // An earlier version.
    greeting,
    { ...greeting, contracts: [] },
  ];
  const streams: Duplex[] = [];
  const open = () => {
    const [ours, its] = duplexPair();
    its.resume();
    const json = hellos[streams.length];
    its.write(encodeFrame({ kind: frameKinds.hello, id: 0, operation: 0, parts: [], json }));
    streams.push(its);
    return { stream: Promise.resolve(ours), end: async () => void ours.destroy() };
  };
  const { keyStore, close } = await openSignerKeyStore(open, { log, contracts: [one, other] });
  expect(keyStore.contracts).toEqual([one, 'router eip155:10=0x1']);
  for (let count = 1; count < hellos.length; count += 1) {
    streams.at(-1)!.destroy();
    while (streams.length === count) await pause(10);
    await vi.waitFor(() => expect(returns).toBe(count), { timeout: 20_000 });
  }
  const named = [{ missing: [other] }, { missing: [one, other] }];
  await vi.waitFor(() => expect(warned).toEqual(named), { timeout: 20_000 });
  await close();
});

test('a signer that hangs, or answers what was not asked, loses its connection', async () => {
  const greet = { kind: frameKinds.hello, id: 0, operation: 0, parts: [] } as const;
  const json = { currentMasterKeyId: 'test', masterKeyIds: ['test'] };
  const connect = async (callMs: number) => {
    const [ours, its] = duplexPair();
    its.resume();
    its.write(encodeFrame({ ...greet, json }));
    return { its, connection: await connectTo(ours, callMs) };
  };
  const hanging = await connect(50);
  await expect(hanging.connection.call(0, [], {})).rejects.toThrow('has ended');
  await hanging.connection.ended;
  const lying = await connect(5_000);
  const waiting = lying.connection.call(0, [], {}).catch((error: unknown) => error);
  lying.its.write(encodeFrame({ ...greet, kind: frameKinds.result, id: 77, json: undefined }));
  expect(isUnavailable(await waiting)).toBe(true);
});

test.each([
  ['what is not a frame', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ['a result', encodeFrame({ kind: frameKinds.result, id: 1, operation: 0, parts: [], json: undefined })],
])('a server that sends %s loses its connection', async (_, bytes) => {
  const [ours, its] = duplexPair();
  serveConnection(its, { keyStore: keyStoreInside(), masterKeyIds: ['test'], report: () => undefined });
  ours.resume();
  ours.write(bytes);
  await new Promise((resolve) => its.once('close', resolve));
});

test.each([
  ['an unknown operation', 99, [], {}],
  ['a call without a binding', 3, [], {}],
  ['a call without its bytes', 1, [], { key: 'test', binding }],
])('%s is refused, and the next call is answered', async (_, operation, parts, json) => {
  const [ours, its] = duplexPair();
  serveConnection(its, { keyStore: keyStoreInside(), masterKeyIds: ['test'], report: () => undefined });
  const connection = await connectTo(ours);
  await expect(connection.call(operation, parts, json)).rejects.toThrow('the signer failed');
  expect((await connection.call(3, [], { binding })).parts).toHaveLength(2);
  connection.close();
});
