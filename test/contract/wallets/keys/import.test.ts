import { randomBytes } from 'node:crypto';
import { generateMnemonic } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { Keypair } from '@solana/web3.js';
import { Keypair as StellarKeypair, StrKey } from '@stellar/stellar-base';
import { expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { accountOf, ethereumAddressOf, exportedText, importedChains } from './foreign-wallets.ts';
import { makeRecipient, sealTo } from './hpke-client.ts';
import { importKey, prepareImport } from './importing.ts';

const nowMs = Date.UTC(2026, 0, 1);
const hourMs = 60 * 60 * 1000;

async function exportSecret(sandbox: TestSandbox, walletId: string, isPhrase = false): Promise<string> {
  const recipient = makeRecipient();
  const { body } = await call(sandbox, 'exportWallet', {
    path: { wallet_id: walletId },
    body: { encryption_type: 'HPKE', recipient_public_key: recipient.spki, export_seed_phrase: isPhrase },
  });
  return recipient.open(body);
}

test.each(importedChains)(
  '%s: private keys and phrases are exported as they were imported',
  async (chain_type) => {
    await using sandbox = await startSandbox();
    for (const [round, strength] of [128, 256].entries()) {
      const phrase = generateMnemonic(wordlist, strength);
      const byKey = await accountOf[chain_type](phrase, 0);
      const byPhrase = await accountOf[chain_type](phrase, 3 + round);

      const wallet = await importKey(sandbox, { chain_type, ...byKey, secret: byKey.secret });
      expect(wallet).toMatchObject({
        address: byKey.address,
        chain_type,
        imported_at: nowMs,
        exported_at: null,
        owner_id: null,
      });
      expect(await exportSecret(sandbox, wallet.id)).toBe(exportedText(chain_type, byKey.secret));

      const imported = await importKey(sandbox, {
        ...{ chain_type, address: byPhrase.address, secret: phrase, index: 3 + round },
        sealing: { aead_algorithm: 'AES_GCM256', info: randomBytes(7), aad: randomBytes(40) },
      });
      expect(imported).toMatchObject({ address: byPhrase.address, imported_at: nowMs });
      expect(await exportSecret(sandbox, imported.id, true)).toBe(phrase);
      expect(await exportSecret(sandbox, imported.id)).toBe(exportedText(chain_type, byPhrase.secret));
      const { body } = await call(sandbox, 'getWallet', { path: { wallet_id: imported.id } });
      expect(body.exported_at).toBe(nowMs);
    }
  },
);

test.each([
  { aead_algorithm: 'CHACHA20_POLY1305', info: Buffer.from('custos'), aad: Buffer.alloc(1) },
  { aead_algorithm: 'CHACHA20_POLY1305' },
  { aead_algorithm: 'AES_GCM256' },
  { aad: Buffer.from('only the aad') },
] as const)('a key encrypted with %j is decrypted', async (sealing) => {
  await using sandbox = await startSandbox();
  const secret = randomBytes(32);
  const address = ethereumAddressOf(secret);
  const wallet = await importKey(sandbox, { chain_type: 'ethereum', address, secret, sealing });
  expect(await exportSecret(sandbox, wallet.id)).toBe(secret.toString('hex'));
});

test('Solana accepts the 64-byte secret key and the 32-byte seed, Stellar the bytes encoded in a seed', async () => {
  await using sandbox = await startSandbox();
  const [long, short] = [Keypair.generate(), Keypair.generate()];
  const byPair = {
    chain_type: 'solana',
    address: long.publicKey.toBase58(),
    secret: long.secretKey,
  } as const;
  const bySeed = {
    ...{ chain_type: 'solana' as const, address: short.publicKey.toBase58() },
    secret: short.secretKey.slice(0, 32),
  } as const;
  expect(await exportSecret(sandbox, (await importKey(sandbox, byPair)).id)).toBe(
    exportedText('solana', long.secretKey.slice(0, 32)),
  );
  expect(await exportSecret(sandbox, (await importKey(sandbox, bySeed)).id)).toBe(
    exportedText('solana', bySeed.secret),
  );
  const stellar = StellarKeypair.random();
  const secret = new Uint8Array(StrKey.decodeEd25519SecretSeed(stellar.secret()));
  const wallet = await importKey(sandbox, { chain_type: 'stellar', address: stellar.publicKey(), secret });
  expect(await exportSecret(sandbox, wallet.id)).toBe(stellar.rawSecretKey().toString('hex'));
});

test('the rest of the body is as for a new wallet, and the address may have any letter case', async () => {
  await using sandbox = await startSandbox();
  const secret = randomBytes(32);
  const address = ethereumAddressOf(secret);
  const wallet = await importKey(sandbox, {
    ...{ chain_type: 'ethereum', address: address.toLowerCase(), secret },
    ...{ owner: { public_key: aliceKey.publicKey }, display_name: 'Cold', external_id: 'cold-01' },
  });
  expect(wallet).toEqual({
    id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    ...{ address, chain_type: 'ethereum', display_name: 'Cold', external_id: 'cold-01' },
    owner_id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    ...{ policy_ids: [], additional_signers: [], entity: null },
    ...{ created_at: nowMs, imported_at: nowMs, exported_at: null, archived_at: null },
  });
  const { body } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_cold-01' } });
  expect(body).toEqual(wallet);
});

test('an import can be submitted once and expires after an hour', async () => {
  await using sandbox = await startSandbox();
  const secret = randomBytes(32);
  const input = { chain_type: 'ethereum', address: ethereumAddressOf(secret), secret } as const;
  const late = await prepareImport(sandbox, input);
  sandbox.clock.advance(hourMs);
  const over = {
    status: 400,
    body: {
      code: 'invalid_data',
      error: '/wallet: no import of this address was started, or it has expired',
    },
  };
  expect(await refusal(sandbox, 'submitWalletImport', { body: late })).toMatchObject(over);
  const body = await prepareImport(sandbox, input);
  sandbox.clock.advance(hourMs - 1);
  const { body: wallet } = await call(sandbox, 'submitWalletImport', { body });
  expect(wallet.imported_at).toBe(nowMs + 2 * hourMs - 1);
  expect(await refusal(sandbox, 'submitWalletImport', { body })).toMatchObject(over);
  const again = await prepareImport(sandbox, input);
  expect(await refusal(sandbox, 'submitWalletImport', { body: again })).toEqual({
    status: 409,
    body: { error: 'the app already has a wallet at this address', code: 'resource_conflict' },
  });
});

test('starting again replaces the key, and a failed submission keeps the import open', async () => {
  await using sandbox = await startSandbox();
  const secret = randomBytes(32);
  const input = { chain_type: 'ethereum', address: ethereumAddressOf(secret), secret } as const;
  const first = await prepareImport(sandbox, input);
  const second = await prepareImport(sandbox, input);
  expect(await refusal(sandbox, 'submitWalletImport', { body: first })).toMatchObject({
    status: 400,
    body: {
      code: 'invalid_data',
      error: '/wallet/ciphertext: the ciphertext cannot be decrypted with this key',
    },
  });
  const { body: wallet } = await call(sandbox, 'submitWalletImport', { body: second });
  expect(wallet.address).toBe(input.address);
});

test('two concurrent submissions create one wallet', async () => {
  await using sandbox = await startSandbox();
  const secret = randomBytes(32);
  const body = await prepareImport(sandbox, {
    ...{ chain_type: 'ethereum', address: ethereumAddressOf(secret), secret },
  });
  const answers = await Promise.allSettled(
    [1, 2, 3].map(() => call(sandbox, 'submitWalletImport', { body })),
  );
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

const order = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';

test.each([
  {
    what: 'a key of another address',
    secret: randomBytes(32),
    error: /^\/wallet\/address: expected the address of the key/,
  },
  {
    what: 'the order of the curve',
    secret: Buffer.from(order, 'hex'),
    error: /not a private key of ethereum$/,
  },
  { what: 'too few bytes', secret: randomBytes(31), error: /not a private key of ethereum$/ },
  { what: 'no bytes', secret: new Uint8Array(), error: /not a private key of ethereum$/ },
  { what: 'a phrase with a wrong checksum', secret: 'zoo '.repeat(12), error: /not a BIP-39 phrase$/ },
  {
    what: 'a phrase of another address',
    secret: 'test '.repeat(11).concat('junk'),
    error: /expected the address of the key/,
  },
])('the encrypted content is $what', async ({ secret, error }) => {
  await using sandbox = await startSandbox();
  const address = ethereumAddressOf(randomBytes(32));
  const body = await prepareImport(sandbox, { chain_type: 'ethereum', address, secret });
  expect(await refusal(sandbox, 'submitWalletImport', { body })).toMatchObject({
    status: 400,
    body: { code: 'invalid_data', error: expect.stringMatching(error) },
  });
  expect((await call(sandbox, 'listWallets', { query: { address } })).body.data).toEqual([]);
});

test('a Solana key pair whose halves do not match is refused', async () => {
  await using sandbox = await startSandbox();
  const [one, other] = [Keypair.generate(), Keypair.generate()];
  const secret = Buffer.concat([one.secretKey.slice(0, 32), other.publicKey.toBytes()]);
  const body = await prepareImport(sandbox, {
    ...{ chain_type: 'solana', address: other.publicKey.toBase58(), secret },
  });
  expect(await refusal(sandbox, 'submitWalletImport', { body })).toMatchObject({
    status: 400,
    body: { error: '/wallet/ciphertext: the decrypted content is not a private key of solana' },
  });
});

test.each([
  ['another key', async (point: string) => sealTo(point, randomBytes(32), { info: Buffer.from('unsaid') })],
  ['nothing', async () => ({ ciphertext: 'AAAA', encapsulated_key: 'AAAA' })],
  [
    'an invalid point',
    async () => ({ ciphertext: 'AAAA', encapsulated_key: Buffer.alloc(65, 4).toString('base64') }),
  ],
])('a ciphertext created with %s is refused', async (_, seal) => {
  await using sandbox = await startSandbox();
  const secret = randomBytes(32);
  const declared = {
    ...{
      address: ethereumAddressOf(secret),
      chain_type: 'ethereum' as const,
      encryption_type: 'HPKE' as const,
    },
    entropy_type: 'private-key',
  } as const;
  const { body: begun } = await call(sandbox, 'initWalletImport', { body: declared });
  const wallet = { ...declared, ...(await seal(begun.encryption_public_key)) };
  expect(await refusal(sandbox, 'submitWalletImport', { body: { wallet } })).toMatchObject({
    status: 400,
    body: { code: 'invalid_data', error: expect.stringMatching(/^\/wallet\/ciphertext: /) },
  });
});

test.each([
  { chain_type: 'ethereum', address: '0x12' },
  { chain_type: 'ethereum', address: Keypair.generate().publicKey.toBase58() },
  { chain_type: 'solana', address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' },
] as const)('an import of $address as $chain_type is refused', async ({ chain_type, address }) => {
  await using sandbox = await startSandbox();
  const body = { chain_type, address, encryption_type: 'HPKE', entropy_type: 'private-key' } as const;
  expect(await refusal(sandbox, 'initWalletImport', { body })).toEqual({
    status: 400,
    body: {
      error: `/address: expected an address of \`${chain_type}\``,
      code: 'invalid_data',
      data: {
        issues: [{ in: 'body', pointer: '/address', message: `expected an address of \`${chain_type}\`` }],
      },
    },
  });
});

test('referenced resources must exist, and the external id must be free', async () => {
  await using sandbox = await startSandbox();
  const secret = randomBytes(32);
  const address = ethereumAddressOf(secret);
  const body = await prepareImport(sandbox, { chain_type: 'ethereum', address, secret });
  const missing = 'z'.repeat(24);
  for (const extra of [
    { owner_id: missing },
    { policy_ids: [missing] },
    { additional_signers: [{ signer_id: missing }] },
  ]) {
    expect(await refusal(sandbox, 'submitWalletImport', { body: { ...body, ...extra } })).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
  }
  const taken = { ...body, external_id: 'alice' };
  expect(await refusal(sandbox, 'submitWalletImport', { body: taken })).toMatchObject({
    status: 409,
    body: { code: 'resource_conflict' },
  });
  const { body: wallet } = await call(sandbox, 'submitWalletImport', {
    body: { ...body, owner: { public_key: bobKey.publicKey } },
  });
  expect(wallet.address).toBe(address);
});
