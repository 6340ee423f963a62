import { generateKeyPairSync, sign } from 'node:crypto';
import { ask } from './measure/ask.ts';
import type { LoadRequest } from './measure/load-order.ts';
import { createPolicyBody, createUserBody, personalSignRequest, postRequest } from './requests.ts';
import type { Address } from './servers/launch.ts';

interface NamedRequest {
  readonly name: string;
  readonly request: LoadRequest;
}

/** Resources for the parameters of paths, and requests that no example leads to. */
export interface Places {
  /** The path with ids of resources that fit the body. */
  pathOf(path: string, body: unknown): string;
  /** Requests to wallets without an owner. */
  readonly requests: readonly NamedRequest[];
  /** Requests to wallets with an owner. */
  readonly signed: readonly NamedRequest[];
}

const chainTypes = [
  'ethereum',
  'solana',
  'tron',
  'sui',
  'aptos',
  'near',
  'xrpl',
  'spark',
  'bitcoin-segwit',
] as const;

/** Creates one resource of each kind, and wallets of the chain types that methods need. */
export async function preparePlaces(address: Address): Promise<Places> {
  const create = async (path: string, body: unknown): Promise<string> =>
    (await ask<{ id: string }>(address, postRequest(address, path, body))).id;
  const wallets = new Map<string, string>();
  for (const chain of chainTypes) wallets.set(chain, await create('/v1/wallets', { chain_type: chain }));
  const ethereum = wallets.get('ethereum') ?? '';
  const keys = Array.from({ length: 100 }, newPublicKey);
  const quorum = await create('/v1/key_quorums', { public_keys: keys, authorization_threshold: 1 });
  const owned = await create('/v1/wallets', { chain_type: 'ethereum', owner_id: quorum });
  const ids: Readonly<Record<string, string>> = {
    policy_id: await create('/v1/policies', createPolicyBody),
    key_quorum_id: quorum,
    user_id: await create('/v1/users', createUserBody),
    condition_set_id: await create('/v1/condition_sets', { name: 'Friends' }),
  };
  const walletFor = (body: unknown): string => wallets.get(chainOf(body)) ?? ethereum;
  return {
    pathOf: (path, body) =>
      path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
        name === 'wallet_id' ? walletFor(body) : (ids[name] ?? 'a'.repeat(24)),
      ),
    requests: [...typedData(address, ethereum)],
    signed: [1_000, 300_000, 900_000].map((length) => ({
      name: `personal_sign of ${length} characters under 100 keys`,
      request: personalSignRequest(address, owned, 'x'.repeat(length)),
    })),
  };
}

function chainOf(body: unknown): string {
  const method = (body as { method?: unknown }).method;
  if (typeof method !== 'string') return 'ethereum';
  if (/^sign(Transaction|Message|AndSendTransaction)$/.test(method)) return 'solana';
  if (method === 'personal_sign' || method === 'wallet_sendCalls') return 'ethereum';
  const [prefix = ''] = method.split('_');
  return prefix === method ? 'spark' : prefix;
}

/** The request with a hundred signatures of keys that may not sign. */
export function signedByStrangers(request: LoadRequest): LoadRequest {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signatures = Array.from({ length: 100 }, (_, index) =>
    sign('sha256', Buffer.from(String(index)), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString(
      'base64',
    ),
  );
  const headers = { ...request.headers, 'service-authorization-signature': signatures.join(',') };
  return { ...request, headers };
}

/** Struct types that are many, wide, nested, or repeated. */
function* typedData(address: Address, walletId: string): Generator<NamedRequest> {
  const request = (name: string, types: object, message: object): NamedRequest => ({
    name: `typed data ${name}`,
    request: postRequest(address, `/v1/wallets/${walletId}/rpc`, {
      method: 'eth_signTypedData_v4',
      params: { typed_data: { domain: { name: 'x' }, types, primary_type: 'A0', message } },
    }),
  });
  const chain = (count: number, fields: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [
        `A${index}`,
        index === count - 1
          ? [{ name: 'x', type: 'uint256' }]
          : Array.from({ length: fields }, (__, field) => ({ name: `f${field}`, type: `A${index + 1}` })),
      ]),
    );
  for (const [count, fields] of [
    [10_000, 1],
    [100, 100],
    [20, 2],
    [12, 3],
  ] as const) {
    yield request(`of ${count} types with ${fields} members`, chain(count, fields), { f0: {} });
  }
  for (const count of [1_000, 9_000]) {
    const types = { A0: [{ name: 'list', type: 'A1[]' }], A1: [{ name: 'x', type: 'string' }] };
    yield request(`of ${count} structs`, types, {
      list: Array.from({ length: count }, () => ({ x: 'y'.repeat(50) })),
    });
  }
  yield request('of one long text', { A0: [{ name: 'x', type: 'string' }] }, { x: 'y'.repeat(900_000) });
  yield request('of long bytes', { A0: [{ name: 'x', type: 'bytes' }] }, { x: `0x${'ab'.repeat(450_000)}` });
}

function newPublicKey(): string {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
}
