import {
  decodeAbiParameters,
  decodeFunctionData,
  type Hex,
  hashMessage,
  hashTypedData,
  parseAbi,
  parseAbiParameters,
  recoverTypedDataAddress,
  size,
  slice,
} from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bobKey } from '../../../../mocks/authorization-keys.ts';
import { signOffline } from '../../../../src/engine/signing/sign-with-key.ts';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { allow, denied, deny, makePolicy, makeWallet, outcome } from '../../policies/enforced/policies.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const base = 'eip155:8453';
const erc1271 = { caip2: base, signature_options: { type: 'erc1271' } };
const signed = { signWith: [bobKey.privateKey] };
const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
const account = '0xf1215844d751dfd01fddcae25c32a665d54f1c90';

/** A user with a wallet of `chain_type` and a smart wallet, as the app makes them. */
async function userWallet(policy_ids: readonly string[] = []) {
  const { body: signer } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [bobKey.publicKey] },
  });
  const signer_id = signer.id;
  const wallets = [
    {
      chain_type: 'ethereum',
      create_smart_wallet: true,
      policy_ids: [...policy_ids],
      additional_signers: [{ signer_id }],
    },
  ];
  const { body } = await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [{ type: 'custom_auth', custom_user_id: crypto.randomUUID() }],
      wallets,
    } as never,
  });
  const accounts = body.linked_accounts as { type: string; id?: string; address?: string }[];
  const of = (type: string) => accounts.find((each) => each.type === type)!;
  return {
    id: of('wallet').id!,
    address: of('wallet').address as Hex,
    smart: of('smart_wallet').address as Hex,
  };
}

const messageTypes = { LightAccountMessage: [{ name: 'message', type: 'bytes' }] } as const;

/** The signature inside the wrapper of ERC-6492, after the call that deploys the wallet was checked. */
function unwrapped(signature: Hex, owner: Hex): Hex {
  expect(slice(signature, size(signature) - 32)).toBe(`0x${'6492'.repeat(16)}`);
  const [factory, data, inner] = decodeAbiParameters(
    parseAbiParameters('address, bytes, bytes'),
    slice(signature, 0, size(signature) - 32),
  );
  expect(factory).toBe('0x0000000000400CdFef5E2714E63d8040b700BC24');
  const abi = parseAbi(['function createAccount(address owner, uint256 salt)']);
  expect(decodeFunctionData({ abi, data }).args).toEqual([owner, 0n]);
  return inner;
}

async function signerOf(signature: Hex, smart: Hex, digest: Hex): Promise<Hex> {
  expect(slice(signature, 0, 1)).toBe('0x00');
  return recoverTypedDataAddress({
    domain: { name: 'LightAccount', version: '2', chainId: 8453, verifyingContract: smart },
    types: messageTypes,
    primaryType: 'LightAccountMessage',
    message: { message: digest },
    signature: slice(signature, 1),
  });
}

// `isValidSignature` of the bytecode of Light Account 2.0.0 on anvil, chain 8453, returned 0x1626ba7e for it.
test('signs as the contract verifies', async () => {
  const secret = new Uint8Array(32).fill(0x46);
  const params = { ...hello.params, smart_account: { chain_id: 8453, address: account } } as const;
  expect((await signOffline('personal_sign', secret, params as never)).signature).toBe(
    '0x00bf3a660fe9a1532596c699e5583ac2468df0fa648d68cb2a149b5d6dbe0853ff21759030758f04adc06d9abd54f558a4a3090878a744b033ad3d309d903119e01c',
  );
});

test('a message and typed data for a smart wallet that is not deployed', async () => {
  const wallet = await userWallet();
  const path = { wallet_id: wallet.id };
  const { body } = await call(
    sandbox,
    'walletRpc',
    { path, body: { ...hello, ...erc1271 } as never },
    signed,
  );
  const { signature } = body.data as { signature: Hex };
  expect(await signerOf(unwrapped(signature, wallet.address), wallet.smart, hashMessage('hello'))).toBe(
    wallet.address,
  );
  const typed = {
    domain: { chainId: 8453 },
    types: { Note: [{ name: 'text', type: 'string' }] },
    message: { text: 'hi' },
  };
  const params = { typed_data: { ...typed, primary_type: 'Note' } };
  const asked = { method: 'eth_signTypedData_v4', params, ...erc1271 };
  const answer = (await call(sandbox, 'walletRpc', { path, body: asked as never }, signed)).body.data as {
    signature: Hex;
  };
  const digest = hashTypedData({ ...typed, primaryType: 'Note' } as never);
  expect(await signerOf(unwrapped(answer.signature, wallet.address), wallet.smart, digest)).toBe(
    wallet.address,
  );
});

test('policies judge the message that was asked for', async () => {
  const content = { field_source: 'message', field: 'content', operator: 'eq', value: 'hello' } as const;
  const id = await makePolicy(sandbox, 'ethereum', [allow('*'), deny('personal_sign', content)]);
  const wallet = await userWallet([id]);
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: { ...hello, ...erc1271 }, ...signed })).toBe(
    denied,
  );
  const other = { ...hello, params: { ...hello.params, message: 'hi' }, ...erc1271 };
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: other, ...signed })).toBe('allowed');
});

test('refuses a wallet without a smart wallet, and a request without a chain', async () => {
  const plain = await makeWallet(sandbox, 'ethereum');
  expect(
    await refusal(sandbox, 'walletRpc', { path: { wallet_id: plain.id }, body: { ...hello, ...erc1271 } }),
  ).toMatchObject({
    status: 400,
    body: { code: 'not_supported', error: expect.stringContaining('create_smart_wallet') },
  });
  const wallet = await userWallet();
  const { signature_options } = erc1271;
  const body = { ...hello, signature_options };
  expect(await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body }, signed)).toMatchObject(
    {
      status: 400,
      body: { code: 'invalid_data', data: { issues: [{ pointer: '/caip2' }] } },
    },
  );
});
