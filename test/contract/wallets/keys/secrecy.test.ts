import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { base58 } from '@scure/base';
import { generateMnemonic } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { expect, test } from 'vitest';
import type { Tables } from '../../../../src/domain/tables.ts';
import type { Log } from '../../../../src/ports/runtime.ts';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { accountOf, ethereumAddressOf } from './foreign-wallets.ts';
import { makeRecipient } from './hpke-client.ts';
import { importKey, prepareImport } from './importing.ts';

/** A log that keeps all entries, including causes and hidden fields. */
function keepingLog(): { log: Log; text(): string } {
  const entries: string[] = [];
  const keep = (fields: object, message: string): void => {
    entries.push(`${message} ${inspect(fields, { depth: 20, showHidden: true, maxStringLength: null })}`);
  };
  return { log: { debug: keep, info: keep, warn: keep, error: keep }, text: () => entries.join('\n') };
}

/** Every encoding in which bytes could leak. */
function spellings(secret: Uint8Array): string[] {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const base64 = bytes.toString('base64').replace(/=+$/, '');
  const array = [...secret.slice(0, 8)].join(', ');
  return [
    hex,
    hex.toUpperCase(),
    hex.slice(0, 20),
    base64,
    base64.slice(0, 16),
    base58.encode(secret),
    array,
  ];
}

const keyOf = (sandbox: TestSandbox, walletId: string) =>
  sandbox.database.orm.em
    .fork()
    .getKysely<Tables>()
    .selectFrom('wallet_keys')
    .selectAll()
    .where('wallet_id', '=', walletId)
    .executeTakeFirstOrThrow();

test('no response and no log line contains a secret, whatever fails', async () => {
  const { log, text } = keepingLog();
  await using sandbox = await startSandbox({ log });
  const answers: unknown[] = [];
  const secret = randomBytes(32);
  const phrase = generateMnemonic(wordlist, 128);
  const account = await accountOf.ethereum(phrase, 0);

  const other = ethereumAddressOf(randomBytes(32));
  for (const sealed of [secret, secret.subarray(0, 31), phrase, `${phrase} zoo`]) {
    const body = await prepareImport(sandbox, { chain_type: 'ethereum', address: other, secret: sealed });
    answers.push(await refusal(sandbox, 'submitWalletImport', { body }));
  }
  const wallet = await importKey(sandbox, {
    ...{ chain_type: 'ethereum', address: ethereumAddressOf(secret), secret },
  });
  const fromPhrase = await importKey(sandbox, {
    chain_type: 'ethereum',
    address: account.address,
    secret: phrase,
  });
  answers.push(wallet, fromPhrase);
  const path = { wallet_id: fromPhrase.id };
  const body = { encryption_type: 'HPKE', recipient_public_key: makeRecipient().spki } as const;
  for (const export_seed_phrase of [true, false]) {
    answers.push((await call(sandbox, 'exportWallet', { path, body: { ...body, export_seed_phrase } })).body);
  }
  const sign = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
  const badSign = { method: 'secp256k1_sign', params: { hash: '0x' } };
  answers.push(await refusal(sandbox, 'walletRpc', { path, body: badSign }));

  // A row that was tampered with, and one that was put in another's place.
  const stored = { one: await keyOf(sandbox, wallet.id), two: await keyOf(sandbox, fromPhrase.id) };
  const flipped = Buffer.from(stored.one.sealed_secret);
  flipped[20] = flipped[20]! ^ 1;
  const changes = [
    { sealed_secret: flipped },
    { sealed_secret: stored.two.sealed_secret, wrapped_data_key: stored.two.wrapped_data_key },
    { wrapped_data_key: stored.two.wrapped_data_key },
    { master_key_id: 'another' },
  ];
  for (const change of changes) {
    await sandbox.database.orm.em
      .fork()
      .getKysely<Tables>()
      .updateTable('wallet_keys')
      .set({ ...stored.one, ...change })
      .where('wallet_id', '=', wallet.id)
      .execute();
    const failure = await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body: sign });
    expect(failure).toEqual({
      status: 500,
      body: { error: 'Service unavailable.', data: { request_id: expect.any(String) } },
    });
    answers.push(failure);
  }
  expect(text()).toContain('KeyStoreError');

  const reported = `${text()}\n${JSON.stringify(answers)}`;
  for (const hidden of [
    ...spellings(secret),
    ...spellings(account.secret),
    phrase,
    phrase.split(' ', 3).join(' '),
  ]) {
    expect(reported).not.toContain(hidden);
  }
});

test('the stored rows of a wallet do not reveal its key', async () => {
  await using sandbox = await startSandbox();
  const secret = randomBytes(32);
  const wallet = await importKey(sandbox, {
    ...{ chain_type: 'ethereum', address: ethereumAddressOf(secret), secret },
  });
  const row = await keyOf(sandbox, wallet.id);
  for (const stored of [row.sealed_secret, row.wrapped_data_key]) {
    expect(Buffer.from(stored).includes(secret.subarray(0, 8))).toBe(false);
  }
  expect(row).toMatchObject({ entropy_type: 'private-key', derivation_path: null, wallet_index: null });
  const begun = await sandbox.database.orm.em
    .fork()
    .getKysely<Tables>()
    .selectFrom('wallet_imports')
    .selectAll()
    .execute();
  expect(begun).toEqual([]);
});
