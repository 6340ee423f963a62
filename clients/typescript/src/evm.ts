import type { CallOptions, Client } from './client.ts';

/** A wallet of the API as far as a signer needs it: what `createWallet` and `getWallet` return. */
export interface SigningWallet {
  readonly id: string;
  readonly address: string;
}

export interface EvmTransaction {
  readonly type?: 0 | 1 | 2 | 4;
  readonly chain_id?: bigint;
  readonly nonce?: bigint;
  readonly to?: string;
  readonly value?: bigint;
  readonly data?: string;
  readonly gas_limit?: bigint;
  readonly gas_price?: bigint;
  readonly max_fee_per_gas?: bigint;
  readonly max_priority_fee_per_gas?: bigint;
}

type Hex = `0x${string}`;

/** Signs on the server, which shows the transaction to the policies of the wallet. */
export async function signEvmTransaction(
  client: Client,
  wallet: SigningWallet,
  transaction: EvmTransaction,
  options?: CallOptions,
): Promise<Hex> {
  const written = Object.fromEntries(
    Object.entries(transaction).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === 'bigint' ? `0x${value.toString(16)}` : value]],
    ),
  );
  const answer = await client.walletRpc(
    {
      path: { wallet_id: wallet.id },
      body: { method: 'eth_signTransaction', params: { transaction: written } },
    },
    options,
  );
  if (answer.method !== 'eth_signTransaction') throw new TypeError(`unexpected answer: ${answer.method}`);
  return answer.data.signed_transaction as Hex;
}

/** Signs with the prefix of EIP-191. */
export async function signEvmMessage(
  client: Client,
  wallet: SigningWallet,
  message: Uint8Array,
  options?: CallOptions,
): Promise<Hex> {
  const params = { message: `0x${Buffer.from(message).toString('hex')}`, encoding: 'hex' } as const;
  const body = { method: 'personal_sign', params } as const;
  const answer = await client.walletRpc({ path: { wallet_id: wallet.id }, body }, options);
  if (answer.method !== 'personal_sign') throw new TypeError(`unexpected answer: ${answer.method}`);
  return answer.data.signature as Hex;
}

export interface TypedData {
  readonly domain: object;
  readonly types: Readonly<Record<string, readonly { readonly name: string; readonly type: string }[]>>;
  readonly primaryType: string;
  readonly message: object;
}

export async function signEvmTypedData(
  client: Client,
  wallet: SigningWallet,
  { domain, types, primaryType, message }: TypedData,
  options?: CallOptions,
): Promise<Hex> {
  const whole = { domain, types, primary_type: primaryType, message };
  // JSON has no bigint, and the API takes integers as decimal text.
  const typed_data = JSON.parse(
    JSON.stringify(whole, (_, value) => (typeof value === 'bigint' ? value.toString() : value)),
  );
  const body = { method: 'eth_signTypedData_v4', params: { typed_data } } as const;
  const answer = await client.walletRpc({ path: { wallet_id: wallet.id }, body }, options);
  if (answer.method !== 'eth_signTypedData_v4') throw new TypeError(`unexpected answer: ${answer.method}`);
  return answer.data.signature as Hex;
}
