import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  actions,
  createTransaction,
  decodeSignedTransaction,
  encodeTransaction,
  PublicKey,
} from 'near-api-js';
import { TronWeb, utils } from 'tronweb';
import {
  type Hex,
  parseTransaction,
  recoverMessageAddress,
  recoverTransactionAddress,
  type TransactionSerialized,
} from 'viem';
import { entryPoint07Address, getUserOperationHash } from 'viem/account-abstraction';
import { recoverAuthorizationAddress } from 'viem/utils';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifySignature } from 'xrpl';
import type { WalletChainType, WalletRpcRequest } from '../../../../src/generated/schemas.ts';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { accountOf } from '../keys/foreign-wallets.ts';
import { importKey } from '../keys/importing.ts';

// The contract's examples are signed by the first account of this phrase.
const phrase = `${'abandon '.repeat(11)}about`;
const stranger = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const chainTypes: readonly WalletChainType[] = [
  ...(['ethereum', 'solana', 'cosmos', 'stellar', 'sui', 'aptos', 'movement', 'tron'] as const),
  ...(['bitcoin-segwit', 'bitcoin-taproot', 'pearl', 'near', 'ton', 'starknet', 'xrpl', 'spark'] as const),
];

let sandbox: TestSandbox;
/** The id of a wallet of each chain. Those that can be imported have the account of the phrase. */
const wallets = new Map<string, { id: string; address: string; public_key?: string | undefined }>();

beforeAll(async () => {
  sandbox = await startSandbox();
  for (const chain_type of chainTypes) {
    wallets.set(
      chain_type,
      chain_type in accountOf
        ? await importKey(sandbox, {
            ...{ chain_type: chain_type as keyof typeof accountOf, secret: phrase, index: 0 },
            address: (await accountOf[chain_type as keyof typeof accountOf](phrase, 0)).address,
          })
        : (await call(sandbox, 'createWallet', { body: { chain_type } })).body,
    );
  }
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const walletOf = (chainType: string) => wallets.get(chainType)!;

async function sign(chainType: string, body: WalletRpcRequest): Promise<Record<string, string>> {
  const path = { wallet_id: walletOf(chainType).id };
  const { body: answer } = await call(sandbox, 'walletRpc', { path, body });
  expect(Object.keys(answer).sort()).toEqual(['data', 'method']);
  expect(answer.method).toBe(body.method);
  return answer.data as Record<string, string>;
}

const document = JSON.parse(
  readFileSync(new URL('../../../../openapi/openapi.json', import.meta.url), 'utf8'),
);
const operation = document.paths['/v1/wallets/{wallet_id}/rpc'].post;
const requests: Record<string, { value: WalletRpcRequest }> =
  operation.requestBody.content['application/json'].examples;
const responses: Record<string, { value: { data: unknown } }> =
  operation.responses['200'].content['application/json'].examples;

describe('the examples of the contract', () => {
  test.each([
    ...['eth_signTransaction', 'personal_sign', 'eth_signTypedData_v4', 'secp256k1_sign'].map((n) => [
      'ethereum',
      n,
    ]),
    ...['eth_sign7702Authorization', 'eth_signUserOperation'].map((name) => ['ethereum', name]),
    ...['signTransaction', 'signMessage'].map((name) => ['solana', name]),
    ...[
      ['aptos', 'aptos_signTransaction'],
      ['tron', 'tron_signTransaction'],
      ['xrpl', 'xrpl_signTransaction'],
    ],
  ] as [string, string][])('%s: %s returns the example of the document', async (chainType, name) => {
    expect(await sign(chainType, requests[name]!.value)).toEqual(responses[name]!.value.data);
  });
});

describe('eth_signTransaction', () => {
  const signed = async (transaction: object): Promise<TransactionSerialized> => {
    const body = { method: 'eth_signTransaction', params: { transaction } } as WalletRpcRequest;
    return (await sign('ethereum', body)).signed_transaction as TransactionSerialized;
  };
  const common = {
    to: stranger,
    chain_id: 8453,
    nonce: 7,
    gas_limit: 50_000,
    value: '0xde0b6b3a7640000',
    data: '0x1234',
  };
  const read = {
    to: stranger.toLowerCase(),
    chainId: 8453,
    nonce: 7,
    gas: 50_000n,
    value: 10n ** 18n,
    data: '0x1234',
  };
  const authorization = {
    ...{
      contract: stranger,
      chain_id: 8453,
      nonce: 1,
      r: `0x${'1'.repeat(64)}`,
      s: `0x${'2'.repeat(64)}`,
      y_parity: 1,
    },
  };

  test.each([
    [0, { gas_price: 5 }, { type: 'legacy', gasPrice: 5n }],
    [1, { gas_price: '0x5' }, { type: 'eip2930', gasPrice: 5n }],
    [
      2,
      { max_fee_per_gas: 9, max_priority_fee_per_gas: 1 },
      { type: 'eip1559', maxFeePerGas: 9n, maxPriorityFeePerGas: 1n },
    ],
    [4, { max_fee_per_gas: 9, authorization_list: [authorization] }, { type: 'eip7702', maxFeePerGas: 9n }],
  ] as const)('type %d: viem reads the fields and recovers the wallet', async (type, fields, expected) => {
    const serialized = await signed({ ...common, type, ...fields });
    expect(parseTransaction(serialized)).toMatchObject({ ...read, ...expected });
    expect(await recoverTransactionAddress({ serializedTransaction: serialized })).toBe(
      walletOf('ethereum').address,
    );
  });

  test('type 4 contains the authorizations', async () => {
    const serialized = await signed({ ...common, type: 4, authorization_list: [authorization] });
    expect(parseTransaction(serialized as `0x04${string}`).authorizationList).toMatchObject([
      { address: stranger.toLowerCase(), chainId: 8453, nonce: 1, yParity: 1 },
    ]);
  });

  test('type 118 is a Tempo envelope', async () => {
    const serialized = await signed({
      ...{ type: 118, chain_id: 4217, nonce: 1, gas_limit: 90_000, max_fee_per_gas: 9 },
      calls: [
        { to: stranger, value: 1 },
        { to: stranger, data: '0x1234' },
      ],
    });
    expect(serialized).toMatch(/^0x76f8[0-9a-f]+$/);
  });
});

test('eth_sign7702Authorization: viem recovers the wallet, with numbers as given', async () => {
  const params = { contract: stranger, chain_id: '0x2105', nonce: 3 } as const;
  const data = await sign('ethereum', { method: 'eth_sign7702Authorization', params });
  const {
    r,
    s,
    y_parity: yParity,
    ...rest
  } = data.authorization as unknown as {
    r: Hex;
    s: Hex;
    y_parity: number;
  };
  expect(rest).toEqual(params);
  const authorization = { address: stranger, chainId: 8453, nonce: 3 } as const;
  expect(await recoverAuthorizationAddress({ authorization, signature: { r, s, yParity } })).toBe(
    walletOf('ethereum').address,
  );
});

test('eth_signUserOperation: viem recovers the wallet from the hash of the entry point', async () => {
  const gas = { call_gas_limit: '0x1', verification_gas_limit: '0x2', pre_verification_gas: '0x3' };
  const fees = { max_fee_per_gas: '0x4', max_priority_fee_per_gas: '0x5' };
  const user_operation = { sender: stranger, nonce: '0x6', call_data: '0x1234', ...gas, ...fees };
  const params = { contract: entryPoint07Address, chain_id: 1, user_operation };
  const { signature } = await sign('ethereum', { method: 'eth_signUserOperation', params });
  const raw = getUserOperationHash({
    ...{ chainId: 1, entryPointAddress: entryPoint07Address, entryPointVersion: '0.7' },
    userOperation: {
      ...{ sender: stranger, nonce: 6n, callData: '0x1234', signature: '0x' },
      ...{ callGasLimit: 1n, verificationGasLimit: 2n, preVerificationGas: 3n },
      ...{ maxFeePerGas: 4n, maxPriorityFeePerGas: 5n },
    },
  });
  const recovered = await recoverMessageAddress({ message: { raw }, signature: signature as Hex });
  expect(recovered).toBe(walletOf('ethereum').address);
});

test('tron_signTransaction: tronweb reads the contract and recovers the wallet', async () => {
  const { address } = walletOf('tron');
  const raw_data = {
    contract: [
      {
        type: 'TriggerSmartContract' as const,
        owner_address: TronWeb.address.toHex(address),
        contract_address: `41${'ab'.repeat(20)}`,
        ...{ data: 'a9059cbb', call_value: 12 },
      },
    ],
    ...{
      ref_block_bytes: '1234',
      ref_block_hash: 'aabbccddeeff0011',
      expiration: 1_767_225_660_000,
      fee_limit: 30,
    },
  };
  const data = await sign('tron', { method: 'tron_signTransaction', params: { raw_data } });
  expect(data.encoding).toBe('hex');
  const signed = data.signed_transaction!;
  const rawDataHex = signed.slice(0, -130);
  const read = utils.deserializeTx.deserializeTransaction('TriggerSmartContract', rawDataHex);
  expect(read.contract[0]).toMatchObject({ parameter: { value: { call_value: 12, data: 'A9059CBB' } } });
  const txID = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(rawDataHex, 'hex'))).toString(
    'hex',
  );
  const recovered = utils.crypto.ecRecover(txID, signed.slice(-130));
  expect(TronWeb.address.fromHex(recovered)).toBe(address);
});

test('xrpl_signTransaction: xrpl.js verifies the blob', async () => {
  const data = await sign('xrpl', requests.xrpl_signTransaction!.value);
  expect(verifySignature(data.signed_transaction!)).toBe(true);
});

test('near_signTransaction: near-api-js decodes it and verifies the signature', async () => {
  const { address } = walletOf('near');
  const key = PublicKey.fromString(
    `ed25519:${(await import('@scure/base')).base58.encode(Buffer.from(address, 'hex'))}`,
  );
  const transaction = createTransaction(
    address,
    key,
    'bob.near',
    5n,
    [actions.transfer(7n)],
    new Uint8Array(32).fill(1),
  );
  const bytes = encodeTransaction(transaction);
  const data = await sign('near', {
    method: 'near_signTransaction',
    params: { transaction: Buffer.from(bytes).toString('base64') },
  });
  const signed = decodeSignedTransaction(Buffer.from(data.signed_transaction!, 'base64'));
  expect(signed.transaction.receiverId).toBe('bob.near');
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(address, 'hex')]);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
  const publicKey = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  expect(verify(null, digest, publicKey, Uint8Array.from(signed.signature.ed25519Signature!.data))).toBe(
    true,
  );
});

test.each([true, false])(
  'signMessageWithIdentityKey: node:crypto verifies it, compact %s',
  async (compact) => {
    const { public_key: publicKeyHex = '' } = walletOf('spark');
    const params = { message: 'hello', compact };
    const { signature = '' } = await sign('spark', { method: 'signMessageWithIdentityKey', params });
    // SubjectPublicKeyInfo of a compressed secp256k1 point.
    const head = '3036301006072a8648ce3d020106052b8104000a032200';
    const key = createPublicKey({
      key: Buffer.from(head + publicKeyHex, 'hex'),
      format: 'der',
      type: 'spki',
    });
    const dsaEncoding = compact ? 'ieee-p1363' : 'der';
    expect(verify('sha256', Buffer.from('hello'), { key, dsaEncoding }, Buffer.from(signature, 'hex'))).toBe(
      true,
    );
  },
);

describe('a method of another chain type', () => {
  const fitting: Record<string, string[]> = {
    ethereum: [
      ...[
        'personal_sign',
        'secp256k1_sign',
        'eth_signTransaction',
        'eth_sendTransaction',
        'eth_signTypedData_v4',
      ],
      ...['eth_sign7702Authorization', 'eth_signUserOperation', 'wallet_sendCalls'],
    ],
    solana: ['signMessage', 'signTransaction', 'signAndSendTransaction'],
    tron: ['tron_signTransaction', 'tron_sendTransaction'],
    xrpl: ['xrpl_signTransaction'],
    aptos: ['aptos_signTransaction'],
    movement: ['aptos_signTransaction'],
    near: ['near_signTransaction'],
    spark: [
      ...[
        'transfer',
        'getBalance',
        'transferTokens',
        'getStaticDepositAddress',
        'getClaimStaticDepositQuote',
      ],
      ...[
        'claimStaticDeposit',
        'createLightningInvoice',
        'payLightningInvoice',
        'signMessageWithIdentityKey',
      ],
      ...['withdraw', 'getWithdrawalFeeQuote'],
    ],
  };

  test.each(chainTypes)('a %s wallet lists the supported methods', async (chainType) => {
    const names = [...(fitting[chainType] ?? []), 'exportPrivateKey', 'exportSeedPhrase'];
    const path = { wallet_id: walletOf(chainType).id };
    for (const { value: body } of Object.values(requests)) {
      if (names.includes(body.method)) continue;
      const message = `expected a method of \`${chainType}\` (${names.map((name) => `\`${name}\``).join(', ')}), got \`${body.method}\``;
      expect(await refusal(sandbox, 'walletRpc', { path, body })).toEqual({
        status: 400,
        body: {
          error: `/method: ${message}`,
          code: 'invalid_data',
          data: { issues: [{ in: 'body', pointer: '/method', message }] },
        },
      });
    }
  });
});
