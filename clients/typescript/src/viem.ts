import { type Hex, hexToBytes, type LocalAccount, stringToBytes, type TransactionSerializable } from 'viem';
import { toAccount } from 'viem/accounts';
import type { CallOptions, Client } from './client.ts';
import {
  type SigningWallet,
  signEvmMessage,
  signEvmTransaction,
  signEvmTypedData,
  type TypedData,
} from './evm.ts';

const types = { legacy: 0, eip2930: 1, eip1559: 2 } as const;

/** An account of viem that signs with a wallet of the API. `options` are those of each call, such as the signers. */
export function viemAccount(client: Client, wallet: SigningWallet, options?: CallOptions): LocalAccount {
  return toAccount({
    address: wallet.address as Hex,
    signMessage({ message }) {
      const bytes =
        typeof message === 'string'
          ? stringToBytes(message)
          : typeof message.raw === 'string'
            ? hexToBytes(message.raw)
            : message.raw;
      return signEvmMessage(client, wallet, bytes, options);
    },
    signTypedData: (data) => signEvmTypedData(client, wallet, data as TypedData, options),
    async signTransaction(transaction: TransactionSerializable) {
      const { type = 'eip1559', accessList = [], chainId, nonce, to, value, data, gas } = transaction;
      if (!(type in types))
        throw new TypeError(`a wallet of the API does not sign transactions of type ${type} here`);
      if (accessList.length > 0) throw new TypeError('a wallet of the API does not sign access lists');
      return signEvmTransaction(
        client,
        wallet,
        {
          type: types[type as keyof typeof types],
          ...(chainId === undefined ? {} : { chain_id: BigInt(chainId) }),
          ...(nonce === undefined ? {} : { nonce: BigInt(nonce) }),
          ...(to ? { to } : {}),
          ...(value === undefined ? {} : { value }),
          ...(data === undefined ? {} : { data }),
          ...(gas === undefined ? {} : { gas_limit: gas }),
          ...(transaction.gasPrice === undefined ? {} : { gas_price: transaction.gasPrice }),
          ...(transaction.maxFeePerGas === undefined ? {} : { max_fee_per_gas: transaction.maxFeePerGas }),
          ...(transaction.maxPriorityFeePerGas === undefined
            ? {}
            : { max_priority_fee_per_gas: transaction.maxPriorityFeePerGas }),
        },
        options,
      );
    },
  });
}
