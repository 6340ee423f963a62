import {
  encodeRlp,
  getBytes,
  hexlify,
  keccak256,
  recoverAddress,
  Transaction,
  TypedDataEncoder,
  verifyMessage,
} from 'ethers';
import type { Hex, TransactionSerializable } from 'viem';
import { getUserOperationHash } from 'viem/account-abstraction';
import { privateKeyToAccount } from 'viem/accounts';
import { recoverAuthorizationAddress } from 'viem/utils';
import { describe, expect, test } from 'vitest';
import type { TempoTransaction } from '../../../../src/engine/signing/ethereum/tempo-transaction.ts';
import type { StandardTransaction } from '../../../../src/engine/signing/ethereum/transaction.ts';
import { type OfflineMethods, signOffline } from '../../../../src/engine/signing/sign-with-key.ts';
import { hex, judgeTimeout, type RandomWallet, randomWallets, seed, walletCount } from './random-wallets.ts';

const account = (wallet: RandomWallet) => privateKeyToAccount(`0x${hex(wallet.secret)}`);
const address = (wallet: RandomWallet, label: string): Hex => `0x${hex(wallet.bytes(label, 20))}`;

/** A random transaction in the contract's names and in viem's. Every third field is left out now and then. */
function randomTransaction(
  wallet: RandomWallet,
  type: 0 | 1 | 2 | 4,
): [StandardTransaction, TransactionSerializable] {
  const ours: Record<string, unknown> = { type };
  const theirs: Record<string, unknown> = {
    type: { 0: 'legacy', 1: 'eip2930', 2: 'eip1559', 4: 'eip7702' }[type],
  };
  const isGiven = (name: string) => wallet.number(`${type}/${name}?`, 4) > 0;
  const set = (name: string, theirName: string, value: bigint, asNumber = false) => {
    ours[name] = asNumber ? Number(value) : `0x${value.toString(16)}`;
    theirs[theirName] = asNumber ? Number(value) : value;
  };
  if (type !== 0 || isGiven('chain_id')) {
    set('chain_id', 'chainId', BigInt(1 + wallet.number(`${type}/chain`, 2 ** 40)), true);
  }
  if (type === 4 || isGiven('to')) theirs.to = ours.to = address(wallet, `${type}/to`);
  if (isGiven('nonce')) set('nonce', 'nonce', BigInt(wallet.number(`${type}/nonce`, 2 ** 20)), true);
  if (isGiven('value')) set('value', 'value', BigInt(`0x${hex(wallet.bytes(`${type}/value`, 12))}`));
  if (isGiven('gas')) set('gas_limit', 'gas', BigInt(wallet.number(`${type}/gas`, 2 ** 30)));
  if (isGiven('data')) {
    theirs.data = ours.data = `0x${hex(wallet.bytes(`${type}/data`, wallet.number(`${type}/length`, 300)))}`;
  }
  const fee = BigInt(wallet.number(`${type}/fee`, 2 ** 40));
  if (type < 2 && isGiven('fee')) set('gas_price', 'gasPrice', fee);
  if (type >= 2 && isGiven('fee')) {
    set('max_fee_per_gas', 'maxFeePerGas', fee);
    set('max_priority_fee_per_gas', 'maxPriorityFeePerGas', fee / 2n);
  }
  return [ours as StandardTransaction, theirs as unknown as TransactionSerializable];
}

function randomTypedData(
  wallet: RandomWallet,
): OfflineMethods['eth_signTypedData_v4']['params']['typed_data'] {
  const text = (label: string) => hex(wallet.bytes(label, wallet.number(`${label}#`, 40)));
  const leaf = (label: string) => ({
    owner: address(wallet, label),
    weight: String(BigInt.asIntN(128, BigInt(`0x${hex(wallet.bytes(`${label}/w`, 16))}`))),
    tag: `0x${hex(wallet.bytes(`${label}/t`, 5))}`,
    isOpen: wallet.number(`${label}/b`, 2) === 1,
  });
  return {
    domain: {
      name: text('name'),
      ...(wallet.number('v', 2) === 1 ? { version: '2' } : {}),
      chainId: wallet.number('chain', 2 ** 40),
      ...(wallet.number('c', 2) === 1 ? { verifyingContract: address(wallet, 'verifier') } : {}),
      ...(wallet.number('s', 2) === 1 ? { salt: `0x${hex(wallet.bytes('salt', 32))}` } : {}),
    },
    types: {
      Order: [
        { name: 'maker', type: 'Leaf' },
        { name: 'takers', type: 'Leaf[]' },
        { name: 'grid', type: 'uint16[2][]' },
        { name: 'memo', type: 'string' },
        { name: 'payload', type: 'bytes' },
        { name: 'amount', type: 'uint256' },
      ],
      Leaf: [
        { name: 'owner', type: 'address' },
        { name: 'weight', type: 'int128' },
        { name: 'tag', type: 'bytes5' },
        { name: 'isOpen', type: 'bool' },
      ],
    },
    primary_type: 'Order',
    message: {
      maker: leaf('maker'),
      takers: Array.from({ length: wallet.number('takers', 4) }, (_, index) => leaf(`taker${index}`)),
      grid: Array.from({ length: wallet.number('grid', 3) }, (_, index) => [
        index,
        wallet.number(`g${index}`, 65_536),
      ]),
      memo: text('memo'),
      payload: `0x${text('payload')}`,
      amount: `0x${hex(wallet.bytes('amount', 32))}`,
    },
  };
}

describe(`viem and ethers, seed ${seed}`, () => {
  test(
    `agree on ${walletCount} addresses and personal messages`,
    async () => {
      for await (const wallet of randomWallets('ethereum')) {
        const theirs = account(wallet);
        expect(wallet.address).toBe(theirs.address);
        expect(`0x${wallet.publicKey}`).toBe(
          `0x0${2 + (Number.parseInt(theirs.publicKey.slice(-1), 16) % 2)}${theirs.publicKey.slice(4, 68)}`,
        );
        const message = wallet.bytes('message', wallet.number('length', 200));
        const { signature } = await signOffline('personal_sign', wallet.secret, {
          message: hex(message),
          encoding: 'hex',
        });
        expect(signature).toBe(await theirs.signMessage({ message: { raw: message } }));
        expect(verifyMessage(message, signature)).toBe(wallet.address);
      }
    },
    judgeTimeout,
  );

  test.each([0, 1, 2, 4] as const)(
    `agree on ${walletCount} transactions of type %i`,
    async (type) => {
      for await (const wallet of randomWallets('ethereum')) {
        const theirAccount = account(wallet);
        const [ours, theirs] = randomTransaction(wallet, type);
        if (type === 4) {
          const params = {
            contract: address(wallet, 'delegate'),
            chain_id: wallet.number('auth', 2 ** 30),
            nonce: wallet.number('an', 2),
          };
          const { authorization } = await signOffline('eth_sign7702Authorization', wallet.secret, params);
          const authorizationList = [
            {
              address: params.contract,
              chainId: params.chain_id,
              nonce: params.nonce,
              r: authorization.r as Hex,
              s: authorization.s as Hex,
              yParity: authorization.y_parity,
            },
          ];
          expect(await recoverAuthorizationAddress({ authorization: authorizationList[0] } as never)).toBe(
            wallet.address,
          );
          Object.assign(ours, { authorization_list: [authorization] });
          Object.assign(theirs, { authorizationList });
        }
        const { signed_transaction } = await signOffline('eth_signTransaction', wallet.secret, {
          transaction: ours,
        });
        expect(signed_transaction).toBe(await theirAccount.signTransaction(theirs));
        if (wallet.index % 10 === 0) expect(Transaction.from(signed_transaction).from).toBe(wallet.address);
      }
    },
    judgeTimeout,
  );

  test(
    `agree on ${walletCount} typed data`,
    async () => {
      for await (const wallet of randomWallets('ethereum')) {
        const typedData = randomTypedData(wallet);
        const { signature } = await signOffline('eth_signTypedData_v4', wallet.secret, {
          typed_data: typedData,
        });
        const { domain, types, primary_type: primaryType, message } = typedData;
        expect(signature).toBe(
          await account(wallet).signTypedData({ domain, types, primaryType, message } as never),
        );
        const digest = TypedDataEncoder.hash(domain, types as never, message);
        expect(recoverAddress(digest, signature)).toBe(wallet.address);
      }
    },
    judgeTimeout,
  );
});

describe(`user operations, seed ${seed}`, () => {
  const entryPoints = [
    ['0.6', '0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789'],
    ['0.7', '0x0000000071727De22E5E9d8BAf0edAc6f37da032'],
    ['0.8', '0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108'],
  ] as const;

  test.each(entryPoints)('of entry point %s have the hash that viem gives', async (version, contract) => {
    for await (const wallet of randomWallets('ethereum', 20)) {
      const [hasFactory, hasPaymaster] = [wallet.number('f', 2) === 1, wallet.number('p', 2) === 1];
      const quantity = (label: string): Hex => `0x${(wallet.number(label, 2 ** 40) + 1).toString(16)}`;
      const pair = (label: string): [Hex, Hex] => [
        address(wallet, label),
        `0x${hex(wallet.bytes(label, 9))}`,
      ];
      const [[factory, factoryData], [paymaster, paymasterData]] = [pair('factory'), pair('paymaster')];
      const common = {
        sender: address(wallet, 'sender'),
        nonce: quantity('nonce'),
        call_data: `0x${hex(wallet.bytes('call', 40))}`,
        call_gas_limit: quantity('cg'),
        verification_gas_limit: quantity('vg'),
        pre_verification_gas: quantity('pg'),
        max_fee_per_gas: quantity('mf'),
        max_priority_fee_per_gas: quantity('mp'),
      };
      const gas =
        version === '0.6'
          ? {}
          : { paymaster_verification_gas_limit: quantity('pv'), paymaster_post_op_gas_limit: quantity('po') };
      const user_operation = {
        ...common,
        ...(hasFactory ? { factory, factory_data: factoryData } : {}),
        ...(hasPaymaster ? { paymaster, paymaster_data: paymasterData, ...gas } : {}),
      };
      const hash = getUserOperationHash({
        chainId: 8453,
        entryPointAddress: contract,
        entryPointVersion: version,
        userOperation: {
          sender: common.sender,
          nonce: BigInt(common.nonce),
          callData: common.call_data,
          callGasLimit: BigInt(common.call_gas_limit),
          verificationGasLimit: BigInt(common.verification_gas_limit),
          preVerificationGas: BigInt(common.pre_verification_gas),
          maxFeePerGas: BigInt(common.max_fee_per_gas),
          maxPriorityFeePerGas: BigInt(common.max_priority_fee_per_gas),
          signature: '0x',
          ...(version === '0.6'
            ? {
                initCode: hasFactory ? `${factory}${factoryData.slice(2)}` : '0x',
                paymasterAndData: hasPaymaster ? `${paymaster}${paymasterData.slice(2)}` : '0x',
              }
            : {
                ...(hasFactory ? { factory, factoryData } : {}),
                ...(hasPaymaster
                  ? {
                      paymaster,
                      paymasterData,
                      paymasterVerificationGasLimit: BigInt(quantity('pv')),
                      paymasterPostOpGasLimit: BigInt(quantity('po')),
                    }
                  : {}),
              }),
        } as never,
      });
      const { signature } = await signOffline('eth_signUserOperation', wallet.secret, {
        contract,
        chain_id: 8453,
        user_operation,
      });
      const signer =
        version === '0.8' ? recoverAddress(hash, signature) : verifyMessage(getBytes(hash), signature);
      expect(signer).toBe(wallet.address);
    }
  });
});

describe(`Tempo transactions, seed ${seed}`, () => {
  type Rlp = string | Rlp[];
  const number = (value: number | undefined): string =>
    value === undefined || value === 0
      ? '0x'
      : `0x${value.toString(16).padStart(value.toString(16).length + (value.toString(16).length % 2), '0')}`;

  // 0x76 || rlp([chain id, priority fee, fee, gas, calls, access list, nonce key, nonce, valid before, valid after,
  // fee token, fee payer, authorizations, signature]), written out apart from the library that encodes them.
  function envelope(tx: TempoTransaction, feeToken: string, feePayer: Rlp, signature: Rlp[]): string {
    const fields: Rlp = [
      number(tx.chain_id as number),
      number(tx.max_priority_fee_per_gas as number),
      number(tx.max_fee_per_gas as number),
      number(tx.gas_limit as number),
      tx.calls.map(({ to, value, data }) => [to, number(value as number), data ?? '0x']),
      (tx.access_list ?? []).map((entry) => [entry.address, [...entry.storage_keys]]),
      number(tx.nonce_key as number),
      number(tx.nonce as number),
      number(tx.valid_before as number),
      number(tx.valid_after as number),
      feeToken,
      feePayer,
      [],
      ...signature,
    ];
    return `0x76${encodeRlp(fields).slice(2)}`;
  }

  test.each([false, true])(
    'have the layout of their specification; paid by another: %s',
    async (isSponsored) => {
      for await (const wallet of randomWallets('ethereum', 20)) {
        const transaction: TempoTransaction = {
          type: 118,
          chain_id: 4217,
          nonce: wallet.number('nonce', 300),
          nonce_key: wallet.number('key', 300),
          gas_limit: wallet.number('gas', 2 ** 30),
          max_fee_per_gas: 2 ** 31 + wallet.number('fee', 2 ** 30),
          max_priority_fee_per_gas: wallet.number('tip', 2 ** 30),
          calls: [
            { to: address(wallet, 'a'), data: `0x${hex(wallet.bytes('d', 30))}` },
            { to: address(wallet, 'b'), value: wallet.number('value', 2 ** 30) },
          ],
          access_list: [{ address: address(wallet, 'l'), storage_keys: [hexlify(wallet.bytes('k', 32))] }],
          fee_token: address(wallet, 'token'),
          valid_after: 100,
          valid_before: 200 + wallet.number('before', 1000),
          ...(isSponsored ? { fee_payer_signature: { r: '0x01', s: '0x02', y_parity: 1 as const } } : {}),
        };
        const token = transaction.fee_token as string;
        const payload = isSponsored
          ? envelope(transaction, '0x', '0x00', [])
          : envelope(transaction, token, '0x', []);
        const { signed_transaction } = await signOffline('eth_signTransaction', wallet.secret, {
          transaction,
        });
        const signature = `0x${signed_transaction.slice(-130)}`;
        expect(recoverAddress(keccak256(payload), signature)).toBe(wallet.address);
        const feePayer: Rlp = isSponsored ? ['0x01', '0x01', '0x02'] : '0x';
        expect(signed_transaction).toBe(envelope(transaction, token, feePayer, [signature]));
      }
    },
  );
});
