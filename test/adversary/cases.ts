import { encodeFrame, frameKinds, MAX_FRAME_BYTES } from '../../src/keys/frames.ts';
import { operationNames } from '../../src/keys/protocol.ts';

/*
 * What the outsider, the tenant and the compromised server send, named by its subject. A finding of their kind is one
 * entry here: it then runs in every run, as it is and changed at random.
 *
 * In texts, `{app}`, `{tenant}`, `{own}`, `{policy}`, `{endpoint}` and `{other}` stand for the id of the honest app, that
 * of the tenant, and ids of a wallet, a policy and a webhook endpoint of the tenant, and of a wallet of the honest app.
 */

/** A request over HTTP. */
export interface HttpCase {
  readonly subject: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'PUT';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A text is sent as it is. */
  readonly body?: object | string;
  /** How many are sent at once. */
  readonly times?: number;
  /** Whether everyone may have the answer; otherwise an outsider's request must be refused. */
  readonly isPublic?: boolean;
  /** Whether a tenant's request must be refused. */
  readonly isForbidden?: boolean;
}

const spaces = (length: number): string => `-----BEGIN PUBLIC KEY-----${' '.repeat(length)}x`;
const json = { 'content-type': 'application/json' };
const page = { origin: 'https://app.acme.example', ...json };

export const outsiderCases: readonly HttpCase[] = [
  { subject: 'a list without a secret', method: 'GET', path: '/v1/wallets' },
  { subject: 'a wallet without a secret', method: 'GET', path: '/v1/wallets/{other}' },
  {
    ...{ subject: 'a wrong secret', method: 'GET', path: '/v1/wallets' },
    headers: { authorization: `Basic ${btoa('{app}:wrong')}` },
  },
  {
    ...{ subject: 'a forged token', method: 'GET', path: '/v1/wallets' },
    headers: { authorization: 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.' },
  },
  {
    ...{ subject: 'guesses of codes from a page', method: 'POST', path: '/v1/passwordless/authenticate' },
    ...{ headers: page, body: { email: 'a@example.com', code: '000000' }, times: 12 },
  },
  {
    ...{ subject: 'a key of spaces without a secret', method: 'POST', path: '/v1/key_quorums' },
    ...{ headers: json, body: { public_keys: [spaces(2_021)] } },
  },
  {
    ...{ subject: 'a body of 2 MB without a secret', method: 'POST', path: '/v1/wallets' },
    ...{ headers: json, body: `{"chain_type":"${'x'.repeat(2_000_000)}"}` },
  },
  {
    ...{ subject: 'guesses of a code by phone', method: 'POST', path: '/v1/passwordless/authenticate' },
    ...{ headers: page, body: { phone_number: '+15555550100', code: '111111' }, times: 4 },
  },
  {
    ...{
      subject: 'a login from a page of another origin',
      method: 'POST',
      path: '/v1/passwordless/authenticate',
    },
    headers: { ...json, origin: 'https://app.acme.example.evil.example' },
    body: { email: 'a@example.com', code: '847261' },
  },
  { subject: 'a path of slashes', method: 'GET', path: `/v1${'/'.repeat(8_000)}a` },
  { subject: 'a path that leaves its folder', method: 'GET', path: '/docs/..%2f..%2f..%2fetc%2fpasswd' },
  { subject: 'the control plane', method: 'GET', path: '/_sandbox/clock' },
  { subject: 'the metrics at the public port', method: 'GET', path: '/metrics' },
  {
    subject: 'preferences of spaces',
    method: 'GET',
    path: '/v1/wallets',
    headers: { prefer: `code=${' '.repeat(8_000)}` },
  },
  {
    ...{ subject: 'the document, many times', method: 'GET', path: '/openapi.json' },
    ...{ times: 6, isPublic: true },
  },
  {
    ...{
      subject: 'a false notification of a provider',
      method: 'POST',
      path: '/provider_hints/bridge/production',
    },
    ...{ headers: json, body: { event_id: 'x' } },
  },
  {
    ...{ subject: 'a guessed code of a device', method: 'POST', path: '/api/oauth/v2/token' },
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=guess&client_id={app}',
  },
];

/** Bytes over TLS, or without it, piece by piece. */
export interface RawCase {
  readonly subject: string;
  readonly pieces: readonly string[];
  /** Between two pieces. */
  readonly pauseMs?: number;
  /** Whether the answer is left unread. */
  readonly isUnread?: boolean;
  /** Whether it is sent without TLS. */
  readonly isPlain?: boolean;
  readonly isPublic?: boolean;
}

const head = (line: string, ...headers: string[]): string =>
  [line, 'host: api.acme.example', ...headers, '', ''].join('\r\n');

export const rawCases: readonly RawCase[] = [
  { subject: 'absolute form', pieces: [head('GET https://api.acme.example/v1/wallets HTTP/1.1')] },
  { subject: 'absolute form of another host', pieces: [head('GET http://127.0.0.1:1/v1/wallets HTTP/1.1')] },
  { subject: 'authority form', pieces: [head('CONNECT 127.0.0.1:22 HTTP/1.1')] },
  { subject: 'asterisk form', pieces: [head('OPTIONS * HTTP/1.1')] },
  { subject: 'a target that is no URL', pieces: [head('GET //[::1 HTTP/1.1')] },
  { subject: 'no host', pieces: ['GET /v1/wallets HTTP/1.1\r\n\r\n'] },
  {
    subject: 'two lengths',
    pieces: [head('POST /v1/wallets HTTP/1.1', 'content-length: 3', 'content-length: 4'), '{}'],
  },
  {
    subject: 'a length and chunks',
    pieces: [
      head('POST /v1/wallets HTTP/1.1', 'content-length: 4', 'transfer-encoding: chunked'),
      '0\r\n\r\n',
    ],
  },
  {
    subject: 'a chunk of a hexadecimal length without end',
    pieces: [head('POST /v1/wallets HTTP/1.1', 'transfer-encoding: chunked'), 'f'.repeat(4_000)],
  },
  {
    subject: 'headers of 64 KB',
    pieces: [head('GET /v1/wallets HTTP/1.1', ...Array(64).fill(`x-a: ${'a'.repeat(1_000)}`))],
  },
  { subject: 'a slow writer', pieces: [...'POST /v1/wallets HTTP/1.1'], pauseMs: 60 },
  {
    subject: 'chunks of a byte',
    pieces: [head('POST /v1/wallets HTTP/1.1', 'transfer-encoding: chunked'), '1\r\nx\r\n'.repeat(20_000)],
  },
  {
    ...{ subject: 'a slow reader of many documents', isUnread: true, isPublic: true },
    pieces: [head('GET /openapi.json HTTP/1.1').repeat(30)],
  },
  { subject: 'TLS within TLS', pieces: ['\u0016\u0003\u0001\u0002\u0000\u0001\u0000'] },
  { subject: 'HTTP without TLS', pieces: [head('GET /v1/wallets HTTP/1.1')], isPlain: true },
  { subject: 'a handshake that stops', pieces: ['\u0016\u0003\u0001'], isPlain: true },
  { subject: 'noise', pieces: ['\u00ff\u0000'.repeat(5_000)], isPlain: true },
  { subject: 'nothing', pieces: [], isPlain: true },
  {
    subject: 'an upgrade',
    pieces: [head('GET /v1/wallets HTTP/1.1', 'connection: upgrade', 'upgrade: h2c')],
  },
  {
    subject: 'a continuation that never comes',
    pieces: [head('POST /v1/wallets HTTP/1.1', 'content-length: 10', 'expect: 100-continue')],
  },
];

const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const rpcOf = (method: string, params: object) => ({ method, params });
const types = (fields: readonly object[]) => ({ EIP712Domain: [], Bomb: fields });
const typedData = (fields: readonly object[], message: object) =>
  rpcOf('eth_signTypedData_v4', {
    typed_data: { domain: {}, primary_type: 'Bomb', types: types(fields), message },
  });
const rpc = { method: 'POST', path: '/v1/wallets/{own}/rpc' } as const;
const rules = (conditions: readonly object[]) => ({
  version: '1.0',
  name: 'hostile',
  chain_type: 'ethereum',
  rules: [{ name: 'r', method: 'eth_signTransaction', action: 'ALLOW', conditions }],
});

export const tenantCases: readonly HttpCase[] = [
  { subject: 'a wallet of another tenant', method: 'GET', path: '/v1/wallets/{other}', isForbidden: true },
  { subject: 'the name of another app', method: 'GET', path: '/v1/apps/{app}', isForbidden: true },
  {
    ...{ subject: 'a signature of another tenant', method: 'POST', path: '/v1/wallets/{other}/rpc' },
    ...{ body: rpcOf('personal_sign', { message: 'mine', encoding: 'utf-8' }), isForbidden: true },
  },
  {
    ...{ subject: 'a transfer of another tenant', method: 'POST', path: '/v1/wallets/{other}/transfer' },
    body: {
      source: { asset: 'eth', chain: 'base', amount: '1' },
      destination: { address: `0x${'66'.repeat(20)}` },
    },
    isForbidden: true,
  },
  {
    ...{ subject: 'the actions of another tenant', method: 'GET', path: '/v1/wallets/{other}/actions' },
    isForbidden: true,
  },
  {
    ...{ subject: 'an export of another tenant', method: 'POST', path: '/v1/wallets/{other}/export' },
    ...{ body: { encryption_type: 'HPKE', recipient_public_key: spaces(827) }, isForbidden: true },
  },
  { subject: 'the whole list of wallets', method: 'GET', path: '/v1/wallets?limit=100' },
  { subject: 'a cursor of another list', method: 'GET', path: '/v1/wallets?cursor=eyJpZCI6IntvdGhlcn0ifQ' },
  { subject: 'a new wallet', method: 'POST', path: '/v1/wallets', body: { chain_type: 'ethereum' } },
  { subject: 'a new wallet for XRPL', method: 'POST', path: '/v1/wallets', body: { chain_type: 'xrpl' } },
  {
    ...{ subject: 'a key of spaces', method: 'POST', path: '/v1/key_quorums', isForbidden: true },
    body: { public_keys: [spaces(2_021)] },
  },
  {
    ...{ subject: 'a batch of keys of spaces', method: 'POST', path: '/v1/wallets/batch' },
    body: { wallets: Array(20).fill({ chain_type: 'ethereum', owner: { public_key: spaces(2_021) } }) },
  },
  {
    ...{ subject: 'a batch of wallets', method: 'POST', path: '/v1/wallets/batch' },
    body: { wallets: Array(5).fill({ chain_type: 'solana' }) },
  },
  {
    ...{ subject: 'colliding idempotency keys', method: 'POST', path: '/v1/policies', times: 6 },
    ...{ headers: { 'service-idempotency-key': '0-xxxxxxxx1Xo):"q##VZ' }, body: rules([]) },
  },
  {
    ...{ subject: 'the idempotency key of the honest client', method: 'POST', path: '/v1/wallets', times: 3 },
    ...{ headers: { 'service-idempotency-key': 'honest-1' }, body: { chain_type: 'ethereum' } },
  },
  {
    ...{ subject: 'a policy of many conditions', method: 'POST', path: '/v1/policies' },
    body: rules(
      Array(50).fill({
        ...{ field_source: 'ethereum_transaction', field: 'value', operator: 'lte', value: '1' },
      }),
    ),
  },
  {
    ...{ subject: 'a policy with a list of spaces', method: 'POST', path: '/v1/policies' },
    body: rules([
      {
        ...{ field_source: 'ethereum_transaction', field: 'to', operator: 'in' },
        value: Array(100).fill(' '.repeat(1_000)),
      },
    ]),
  },
  {
    ...{ subject: 'typed data that contains itself', ...rpc },
    body: typedData([{ name: 'next', type: 'Bomb' }], { next: { next: { next: null } } }),
  },
  {
    ...{ subject: 'typed data of 20,000 values', ...rpc },
    body: typedData([{ name: 'all', type: 'uint256[]' }], { all: Array(20_000).fill('1') }),
  },
  {
    ...{ subject: 'typed data with 40 dimensions', ...rpc },
    body: typedData([{ name: 'all', type: `uint256${'[]'.repeat(40)}` }], { all: [] }),
  },
  {
    ...{ subject: 'a text with U+0000', ...rpc },
    body: rpcOf('personal_sign', { message: 'a\u0000b', encoding: 'utf-8' }),
  },
  {
    ...{ subject: 'garbage for a Solana transaction', ...rpc },
    body: rpcOf('signTransaction', { transaction: 'gQEAAQ', encoding: 'base64' }),
  },
  {
    ...{ subject: 'calldata of 100 KB', ...rpc },
    body: rpcOf('eth_signTransaction', {
      transaction: { to: `0x${'11'.repeat(20)}`, data: `0x${'ff'.repeat(100_000)}`, chain_id: 8453 },
    }),
  },
  {
    ...{ subject: 'a type that is not declared', ...rpc },
    body: typedData([{ name: 'all', type: 'uint256 a,address)Evil(uint8[]' }], { all: [] }),
  },
  {
    ...{ subject: 'names of members that are no identifiers', ...rpc },
    body: typedData([{ name: 'Wallet address', type: 'address' }], {
      'Wallet address': `0x${'11'.repeat(20)}`,
    }),
  },
  {
    ...{ subject: 'a user operation of a delegating account', ...rpc },
    body: rpcOf('eth_signUserOperation', {
      ...{ contract: '0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108', chain_id: 8453 },
      user_operation: {
        ...{ sender: `0x${'11'.repeat(20)}`, nonce: '0x1', call_data: `0xb61d27f6${'00'.repeat(96)}` },
        ...{ call_gas_limit: '0x5208', verification_gas_limit: '0x186a0', pre_verification_gas: '0xc350' },
        ...{ max_fee_per_gas: '0x3b9aca00', max_priority_fee_per_gas: '0xf4240' },
        ...{ factory: '0x7702000000000000000000000000000000000000', factory_data: '0xdeadbeef' },
      },
    }),
    isForbidden: true,
  },
  {
    ...{ subject: 'a transaction of NEAR with an unknown action', ...rpc },
    body: rpcOf('near_signTransaction', { transaction: 'ff'.repeat(200), encoding: 'hex' }),
  },
  {
    ...{ subject: 'a batch of users', method: 'POST', path: '/v1/users/batch' },
    body: {
      users: Array(10).fill({ linked_accounts: [{ type: 'email', address: 'the-same@example.com' }] }),
    },
  },
  {
    ...{ subject: 'a user with 2,000 fields', method: 'POST', path: '/v1/users' },
    body: {
      linked_accounts: [{ type: 'custom_auth', custom_user_id: '../..' }],
      custom_metadata: Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`field${n}`, n])),
    },
  },
  {
    ...{ subject: 'a condition set of a long name', method: 'POST', path: '/v1/condition_sets' },
    body: { name: 'evil'.repeat(50) },
  },
  {
    ...{ subject: 'a quorum of the key quorum of another tenant', method: 'POST', path: '/v1/key_quorums' },
    ...{ body: { key_quorum_ids: ['{quorum}'] }, isForbidden: true },
  },
  {
    ...{ subject: 'an intent for a wallet of another tenant', method: 'POST' },
    ...{ path: '/v1/intents/wallets/{other}/rpc', isForbidden: true },
    body: rpcOf('personal_sign', { message: 'mine', encoding: 'utf-8' }),
  },
  {
    ...{ subject: 'a transfer without funds', method: 'POST', path: '/v1/wallets/{own}/transfer' },
    body: {
      source: { asset: 'eth', chain: 'base', amount: '1' },
      destination: { address: `0x${'66'.repeat(20)}` },
    },
  },
  {
    ...{ subject: 'a swap to nowhere', method: 'POST', path: '/v1/wallets/{own}/swap/quote' },
    body: {
      source: { caip2: 'eip155:8453', asset_address: 'native' },
      ...{ destination: { asset_address: `0x${'e1'.repeat(20)}` }, base_amount: '9'.repeat(77) },
    },
  },
  { subject: 'JSON nested 100,000 deep', method: 'POST', path: '/v1/wallets', body: deep(100_000) },
  {
    ...{ subject: 'JSON with a member twice', ...rpc, isForbidden: true },
    body: '{"method":"personal_sign","method":"personal_sign","params":{"message":"a","encoding":"utf-8"}}',
  },
  { subject: 'JSON that is not UTF-8', method: 'POST', path: '/v1/wallets', body: '{"chain_type":"\ud800"}' },
  {
    ...{ subject: 'a webhook to this machine', method: 'POST', path: '/v1/webhooks', isForbidden: true },
    body: { url: 'https://127.0.0.1:1/', event_types: ['wallet.archived'] },
  },
  {
    ...{ subject: 'a webhook without a server', method: 'POST', path: '/v1/webhooks' },
    body: { url: 'https://hook.acme.example/', description: 'x' },
  },
  {
    ...{ subject: 'deliveries with a filter', method: 'GET' },
    path: '/v1/webhooks/{endpoint}/deliveries?status=failed&limit=100',
  },
  {
    ...{ subject: 'a search of metadata', method: 'POST', path: '/v1/users/search' },
    body: { searchTerm: '%'.repeat(200) },
  },
  {
    ...{ subject: 'an owner of another tenant', method: 'POST', path: '/v1/wallets', isForbidden: true },
    body: { chain_type: 'ethereum', owner_id: '{quorum}' },
  },
  {
    ...{ subject: 'a compressed body', method: 'POST', path: '/v1/wallets', isForbidden: true },
    ...{ headers: { 'content-encoding': 'gzip' }, body: 'not gzip' },
  },
];

/** What is sent to the signer instead of a call. */
export interface FrameCase {
  readonly subject: string;
  readonly bytes: () => Buffer;
}

const call = { kind: frameKinds.call, id: 1, operation: 3, parts: [] };
/** A frame with these bytes after its head. */
function framed(rest: Buffer, patch: (head: Buffer) => void = () => undefined): Buffer {
  const bytes = Buffer.concat([encodeFrame({ ...call, json: undefined }), rest]);
  bytes.writeUInt32BE(bytes.length - 4);
  patch(bytes);
  return bytes;
}
const textOf = (text: string): Buffer => framed(Buffer.from(text));

export const frameCases: readonly FrameCase[] = [
  {
    subject: 'a text that is not UTF-8',
    bytes: () =>
      framed(Buffer.concat([Buffer.from('{"purpose":"'), Buffer.alloc(3_000_000, 0xff), Buffer.from('"}')])),
  },
  {
    subject: 'a frame that is too long',
    bytes: () => framed(Buffer.alloc(8), (all) => all.writeUInt32BE(MAX_FRAME_BYTES + 1)),
  },
  { subject: 'a frame that is too short', bytes: () => Buffer.from([0, 0, 0, 1, 1]) },
  {
    subject: 'a frame that never ends',
    bytes: () => framed(Buffer.alloc(100), (all) => all.writeUInt32BE(MAX_FRAME_BYTES)),
  },
  { subject: 'another version', bytes: () => framed(Buffer.alloc(0), (all) => all.writeUInt8(9, 4)) },
  { subject: 'another kind', bytes: () => framed(Buffer.alloc(0), (all) => all.writeUInt8(99, 5)) },
  { subject: 'an unknown operation', bytes: () => framed(Buffer.alloc(0), (all) => all.writeUInt8(250, 10)) },
  { subject: '255 byte strings', bytes: () => framed(Buffer.alloc(64), (all) => all.writeUInt8(255, 11)) },
  {
    subject: 'a byte string beyond its frame',
    bytes: () => framed(Buffer.from([0xff, 0xff, 0xff, 0xff]), (all) => all.writeUInt8(1, 11)),
  },
  { subject: 'JSON 5,000 deep', bytes: () => textOf(deep(5_000)) },
  { subject: 'JSON of 200,000 objects', bytes: () => textOf(`[${'{},'.repeat(200_000)}{}]`) },
  { subject: 'a number in place of an object', bytes: () => textOf('1') },
  { subject: 'null in place of an object', bytes: () => textOf('null') },
  { subject: 'prototypes', bytes: () => textOf('{"__proto__":{"purpose":"x"},"binding":{"constructor":1}}') },
  ...(['hello', 'result', 'failure', 'leaving'] as const).map((kind) => ({
    subject: `a ${kind} of a server`,
    bytes: () => encodeFrame({ ...call, kind: frameKinds[kind], json: {} }),
  })),
  {
    subject: 'every operation with nothing',
    bytes: () =>
      Buffer.concat(
        operationNames.map((_, operation) => encodeFrame({ ...call, id: operation, operation, json: {} })),
      ),
  },
  {
    subject: '500 calls at once with one id',
    bytes: () => Buffer.concat(Array(500).fill(encodeFrame({ ...call, json: { binding: {} } }))),
  },
];
