import { generateKeyPairSync } from 'node:crypto';
import { encode } from 'ripple-binary-codec';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, signRequest } from '../../support/call.ts';
import { longestSlice, MAX_SLICE_MS } from '../../support/monitoring/longest-slice.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Requests of the greatest size that are accepted, and those that are refused late: none keeps the thread from others.
const ATTEMPTS = 10;
/** A little less than a body may have. */
const LARGE = 900_000;

interface Sent {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly target: string;
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
}

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ownerKey = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
const owner = { public_key: publicKey.export({ format: 'der', type: 'spki' }).toString('base64') };
const recipient = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';

let sandbox: TestSandbox;
let walletId: string;
let ownedId: string;
let ownedPolicyId: string;
/** Wallets whose policies search in messages: few long texts, and many short ones. */
const searched: { few: string; many: string } = { few: '', many: '' };
const ofChain: Partial<Record<'tron' | 'xrpl' | 'near', { readonly id: string; readonly address: string }>> =
  {};

/** A wallet under a policy that denies messages with any of these texts. */
async function walletWithout(texts: readonly string[]): Promise<string> {
  const condition = (value: string) =>
    ({ field_source: 'message', field: 'content', operator: 'contains', value }) as const;
  const rules = Array.from({ length: Math.ceil(texts.length / 50) }, (_, at) => ({
    ...({ name: `Texts ${at}`, method: 'personal_sign', action: 'DENY' } as const),
    conditions: texts.slice(50 * at, 50 * (at + 1)).map(condition),
  }));
  const allow = { name: 'Others', method: 'personal_sign', action: 'ALLOW' } as const;
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: {
      version: '1.0',
      name: 'Texts',
      chain_type: 'ethereum',
      rules: [...rules, { ...allow, conditions: [] }],
    },
  });
  const wallet = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy.id] },
  });
  return wallet.body.id;
}

beforeAll(async () => {
  sandbox = await startSandbox({ hints: true });
  walletId = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body.id;
  ownedId = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', owner } })).body.id;
  const owned = { version: '1.0', name: 'Owned', chain_type: 'ethereum', owner } as const;
  ownedPolicyId = (await call(sandbox, 'createPolicy', { body: { ...owned, rules: [] } })).body.id;
  const half = 'a'.repeat(36_000);
  searched.few = await walletWithout(list(10, () => `${half}b${half}`));
  searched.many = await walletWithout(list(4_950, () => `${'a'.repeat(60)}b`));
  for (const chain_type of ['tron', 'xrpl', 'near'] as const) {
    ofChain[chain_type] = (await call(sandbox, 'createWallet', { body: { chain_type } })).body;
  }
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const list = <Item>(length: number, item: (index: number) => Item) =>
  Array.from({ length }, (_, index) => item(index));

function typedData(type: string, value: unknown): object {
  const types = { Mail: [{ name: 'a', type }] };
  return { domain: { name: 'X', chainId: 1 }, types, primary_type: 'Mail', message: { a: value } };
}

function rpc(method: string, params: object): Sent {
  return { target: `/v1/wallets/${walletId}/rpc`, body: { method, chain_type: 'ethereum', params } };
}

function messageOf(id: string, message: string): Sent {
  const params = { message, encoding: 'utf-8' };
  return { target: `/v1/wallets/${id}/rpc`, body: { method: 'personal_sign', params } };
}

function rawTron(bytes: string): Sent {
  const params = { bytes, encoding: 'hex', hash_function: 'sha256' };
  return { target: `/v1/wallets/${ofChain.tron!.id}/raw_sign`, body: { params } };
}

/** Borsh: signer, key, nonce, receiver, block hash, and as many actions `CreateAccount`, a byte each. */
function nearTransaction(count: number): Sent {
  const { id, address } = ofChain.near!;
  const number = (value: number) => Buffer.from(Uint32Array.of(value).buffer);
  const account = Buffer.concat([number(address.length), Buffer.from(address)]);
  const key = Buffer.concat([Buffer.of(0), Buffer.from(address, 'hex')]);
  const parts = [
    account,
    key,
    Buffer.alloc(8),
    account,
    Buffer.alloc(32),
    number(count),
    Buffer.alloc(count),
  ];
  const params = { transaction: Buffer.concat(parts).toString('base64') };
  return { target: `/v1/wallets/${id}/rpc`, body: { method: 'near_signTransaction', params } };
}

function memos(count: number, bytes: number): object {
  return { Memos: list(count, () => ({ Memo: { MemoData: 'AB'.repeat(bytes) } })) };
}

function nested(depth: number, inner: object): object {
  return depth === 0 ? inner : { Memos: [{ Memo: nested(depth - 1, inner) }] };
}

function xrplTransaction(fields: object): Sent {
  const { id, address } = ofChain.xrpl!;
  const payment = { TransactionType: 'Payment', Destination: address, Amount: '1' };
  const transaction = encode({ ...payment, Account: address, Fee: '10', Sequence: 1, Flags: 0, ...fields });
  const params = { transaction, encoding: 'hex' };
  return { target: `/v1/wallets/${id}/rpc`, body: { method: 'xrpl_signTransaction', params } };
}

function tempo(parts: object): Sent {
  const fees = { gas_limit: 21_000, max_fee_per_gas: 1, max_priority_fee_per_gas: 1 };
  const calls = [{ to: recipient }];
  return rpc('eth_signTransaction', {
    transaction: { type: 118, chain_id: 42431, nonce: 0, calls, ...fees, ...parts },
  });
}

/** Ten times the same signature, and a key for retries. */
function signed(signedBody: (body: object) => object = (body) => body): Sent {
  const target = `/v1/wallets/${ownedId}/rpc`;
  const typed_data = typedData(
    'string[]',
    list(90_000, () => 'aaaaa'),
  );
  const body = { method: 'eth_signTypedData_v4', chain_type: 'ethereum', params: { typed_data } };
  const headers = { 'service-app-id': sandbox.appId, 'service-idempotency-key': crypto.randomUUID() };
  const request = { method: 'POST', target, body: signedBody(body) };
  const signature = signRequest(sandbox, request, headers, ownerKey);
  return {
    ...{ target, body },
    headers: { ...headers, 'service-authorization-signature': list(10, () => signature).join(',') },
  };
}

const cases: Readonly<Record<string, readonly [status: number, make: () => Sent]>> = {
  'a long text': [400, () => rpc('personal_sign', { message: 'a'.repeat(LARGE), encoding: 'utf-8' })],
  'escapes that no text may have': [
    400,
    () => ({ target: '/v1/wallets', body: `{"chain_type":"${'\\u0000'.repeat(LARGE / 6)}"}` }),
  ],
  'a long name': [400, () => ({ target: '/v1/wallets', body: { ['a'.repeat(LARGE)]: 1 } })],
  'digits without end': [400, () => ({ target: '/v1/wallets', body: `{"a":${'1'.repeat(LARGE)}}` })],
  'broken at its end': [400, () => ({ target: '/v1/wallets', body: `{"a":[${'0,'.repeat(99_000)}],}` })],
  'a member twice at its end': [
    400,
    () => ({ target: '/v1/wallets', body: `{"a":"${'\\"'.repeat(LARGE / 2)}","b":1,"b":2}` }),
  ],
  'the longest message': [
    200,
    () => rpc('personal_sign', { message: '\u0301'.repeat(300_002), encoding: 'utf-8' }),
  ],
  'long texts that a policy looks for': [200, () => messageOf(searched.few, 'a'.repeat(150_000))],
  'many texts that a policy looks for': [400, () => messageOf(searched.many, 'a'.repeat(150_000))],
  'many texts that a policy looks for in a message of usual length': [
    200,
    () => messageOf(searched.many, 'a'.repeat(300)),
  ],
  'a Tron transaction of many contracts': [200, () => rawTron('5a00'.repeat(75_000))],
  'a Tron message of many fields': [200, () => rawTron('0801'.repeat(75_000))],
  'a NEAR transaction of many actions': [400, () => nearTransaction(200_000)],
  'an XRP Ledger transaction of many memos': [200, () => xrplTransaction(memos(400, 80))],
  'an XRP Ledger transaction of nested memos': [200, () => xrplTransaction(nested(3, memos(380, 90)))],
  'an XRP Ledger transaction of many signers': [
    400,
    () =>
      xrplTransaction({
        TransactionType: 'SignerListSet',
        SignerEntries: list(390, () => ({
          SignerEntry: { Account: ofChain.xrpl!.address, SignerWeight: 1 },
        })),
      }),
  ],
  'an XRP Ledger transaction of long paths': [
    400,
    () => xrplTransaction({ Paths: list(6, () => list(240, () => ({ account: ofChain.xrpl!.address }))) }),
  ],
  'typed data of one text': [
    200,
    () => rpc('eth_signTypedData_v4', { typed_data: typedData('string', 'a'.repeat(LARGE)) }),
  ],
  'typed data of many numbers': [
    200,
    () =>
      rpc('eth_signTypedData_v4', {
        typed_data: typedData(
          'uint256[]',
          list(99_000, () => 1),
        ),
      }),
  ],
  'typed data with digits without end': [
    400,
    () => rpc('eth_signTypedData_v4', { typed_data: typedData('uint256', '1'.repeat(LARGE)) }),
  ],
  'the longest access lists': [
    200,
    () => {
      const storage_keys = list(990, () => `0x${'ab'.repeat(32)}`);
      return tempo({ access_list: list(13, () => ({ address: recipient, storage_keys })) });
    },
  ],
  'many calls': [
    200,
    () => tempo({ calls: list(100, () => ({ to: recipient, data: `0x${'ab'.repeat(4_000)}` })) }),
  ],
  'signatures and a key for retries': [200, () => signed()],
  'signatures of another body': [401, () => signed((body) => ({ ...body, more: 1 }))],
  'a proposed request': [
    200,
    () => ({
      target: `/v1/intents/wallets/${ownedId}/rpc`,
      body: {
        method: 'eth_signTypedData_v4',
        chain_type: 'ethereum',
        params: { typed_data: typedData('string', 'a'.repeat(LARGE)) },
      },
    }),
  ],
  'a list of proposed requests': [200, () => ({ method: 'GET', target: '/v1/intents' })],
  'many values of one parameter': [
    200,
    () => ({ method: 'GET', target: `/v1/wallets?${'a&'.repeat(7_000)}` }),
  ],
  'many members where no body is expected': [
    401,
    () => {
      const members = list(80_000, (index) => [`k${((index * 7_919) % 90_001).toString(36)}`, 1]);
      return {
        ...{ method: 'DELETE', target: `/v1/policies/${ownedPolicyId}` },
        body: Object.fromEntries(members),
        headers: { 'service-authorization-signature': Buffer.alloc(64, 7).toString('base64') },
      };
    },
  ],
  'many separators of signatures': [
    400,
    () => ({
      ...rpc('personal_sign', { message: 'a', encoding: 'utf-8' }),
      headers: { 'service-authorization-signature': 'MEQC,'.repeat(2_800) },
    }),
  ],
};

function send({ method = 'POST', target, body, headers }: Sent): () => Promise<number> {
  const { appId, appSecret, baseUrl } = sandbox;
  const sent =
    body === undefined ? null : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return async () => {
    const answer = await sandbox.dispatcher.request({
      ...{ origin: baseUrl, path: target, method, body: sent },
      headers: {
        authorization: `Basic ${Buffer.from(`${appId}:${appSecret}`).toString('base64')}`,
        'service-app-id': appId,
        ...(sent === null ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    });
    await answer.body.dump();
    return answer.statusCode;
  };
}

test.each(Object.entries(cases))('%s', async (_, [expected, make]) => {
  let shortest = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && shortest > MAX_SLICE_MS; attempt += 1) {
    const { result: status, longestMs } = await longestSlice(send(make()));
    expect(status).toBe(expected);
    shortest = Math.min(shortest, longestMs);
  }
  expect(shortest).toBeLessThan(MAX_SLICE_MS);
});

test('a page of long intents ends early, and the next ones have the others', async () => {
  const proposed = new Set<string>();
  for (let index = 0; index < 5; index += 1) {
    const typed_data = typedData('string', 'a'.repeat(LARGE));
    const { body } = await call(sandbox, 'createWalletRpcIntent', {
      path: { wallet_id: ownedId },
      body: { method: 'eth_signTypedData_v4', chain_type: 'ethereum', params: { typed_data } } as never,
    });
    proposed.add(body.intent_id);
  }
  const seen: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < 20; page += 1) {
    const query = cursor === undefined ? { resource_id: ownedId } : { resource_id: ownedId, cursor };
    const { body } = await call(sandbox, 'listIntents', { query });
    expect(JSON.stringify(body).length).toBeLessThan(4 * LARGE);
    seen.push(...body.data.map(({ intent_id }) => intent_id));
    if (body.next_cursor === null) break;
    cursor = body.next_cursor;
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect([...proposed].filter((id) => !seen.includes(id))).toEqual([]);
  expect(seen.length).toBeGreaterThanOrEqual(5);
});
