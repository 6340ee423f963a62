import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type ChainType, chains, derivePrivateKey } from '../../../src/engine/signing/chains.ts';
import {
  isOfflineMethod,
  type OfflineMethod,
  type OfflineMethods,
  signOffline,
} from '../../../src/engine/signing/sign-with-key.ts';
import type { WalletRpcRequest, WalletRpcResponse } from '../../../src/generated/schemas.ts';

// The examples of the contract are signed with the keys of this phrase.
const mnemonic =
  'abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about';

const document = JSON.parse(readFileSync(new URL('../../../openapi/openapi.json', import.meta.url), 'utf8'));
const operation = document.paths['/v1/wallets/{wallet_id}/rpc'].post;
const requests: Record<string, { value: { method: string; params: never } }> =
  operation.requestBody.content['application/json'].examples;
const responses: Record<string, { value: { data: unknown } }> =
  operation.responses['200'].content['application/json'].examples;
const offline = Object.keys(requests).filter((name) => isOfflineMethod(requests[name]?.value.method ?? ''));

test('the contract has an example of every offline method', () => {
  const methods = new Set(offline.map((name) => requests[name]?.value.method));
  expect([...methods].sort()).toEqual(
    [
      'aptos_signTransaction',
      'eth_sign7702Authorization',
      'eth_signTransaction',
      'eth_signTypedData_v4',
      'eth_signUserOperation',
      'near_signTransaction',
      'personal_sign',
      'secp256k1_sign',
      'signMessage',
      'signMessageWithIdentityKey',
      'signTransaction',
      'tron_signTransaction',
      'xrpl_signTransaction',
    ].sort(),
  );
});

test.each(offline)('signing the example %s yields the bytes in the contract', async (name) => {
  const { method, params } = requests[name]?.value ?? { method: '', params: {} as never };
  const [chainType] = Object.entries(chains).find(([, chain]) => chain.rpcMethods.includes(method)) ?? [];
  const secret = await derivePrivateKey(chainType as ChainType, { mnemonic });
  expect(await signOffline(method as OfflineMethod, secret, params)).toEqual(responses[name]?.value.data);
});

// The inputs and outputs of the signing functions must have the types of the contract.
type ParamsOf<Method> = Extract<WalletRpcRequest, { method: Method; params: unknown }>['params'];
type DataOf<Method> = Extract<WalletRpcResponse, { method: Method }>['data'];
type Misfit = {
  [Method in OfflineMethod]: ParamsOf<Method> extends OfflineMethods[Method]['params']
    ? OfflineMethods[Method]['data'] extends DataOf<Method>
      ? never
      : `data of ${Method}`
    : `params of ${Method}`;
}[OfflineMethod];

test('inputs and outputs have the types of the contract', () => {
  // Compiles only without mismatches; otherwise the type names them.
  const fits: [Misfit] extends [never] ? true : Misfit = true;
  expect(fits).toBe(true);
});
