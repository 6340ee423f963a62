import {
  AbstractSigner,
  copyRequest,
  getBytes,
  type Provider,
  resolveAddress,
  Transaction,
  type TransactionRequest,
  type TypedDataDomain,
  TypedDataEncoder,
  type TypedDataField,
  toUtf8Bytes,
} from 'ethers';
import type { CallOptions, Client } from './client.ts';
import { type SigningWallet, signEvmMessage, signEvmTransaction, signEvmTypedData } from './evm.ts';

/** A signer of ethers that signs with a wallet of the API. `options` are those of each call, such as the signers. */
export class EthersSigner extends AbstractSigner {
  readonly #client: Client;
  readonly #wallet: SigningWallet;
  readonly #options: CallOptions | undefined;

  constructor(client: Client, wallet: SigningWallet, provider?: Provider | null, options?: CallOptions) {
    super(provider ?? null);
    this.#client = client;
    this.#wallet = wallet;
    this.#options = options;
  }

  async getAddress(): Promise<string> {
    return this.#wallet.address;
  }

  connect(provider: Provider | null): EthersSigner {
    return new EthersSigner(this.#client, this.#wallet, provider, this.#options);
  }

  async signTransaction(request: TransactionRequest): Promise<string> {
    const { from: _, to, ...fields } = copyRequest(request);
    const target = to == null ? null : await resolveAddress(to, this.provider);
    const transaction = Transaction.from({ ...fields, to: target } as object);
    const { type, chainId, nonce, value, data, gasLimit } = transaction;
    if (type !== null && type > 2)
      throw new TypeError(`a wallet of the API does not sign transactions of type ${type} here`);
    if (transaction.accessList?.length) throw new TypeError('a wallet of the API does not sign access lists');
    const isFixedPrice = type === 0 || type === 1;
    return signEvmTransaction(
      this.#client,
      this.#wallet,
      {
        type: (type ?? 2) as 0 | 1 | 2,
        ...{ chain_id: chainId, nonce: BigInt(nonce), value, data, gas_limit: gasLimit },
        ...(target === null ? {} : { to: target }),
        ...(isFixedPrice
          ? { gas_price: transaction.gasPrice ?? 0n }
          : {
              max_fee_per_gas: transaction.maxFeePerGas ?? 0n,
              max_priority_fee_per_gas: transaction.maxPriorityFeePerGas ?? 0n,
            }),
      },
      this.#options,
    );
  }

  async signMessage(message: string | Uint8Array): Promise<string> {
    const bytes = typeof message === 'string' ? toUtf8Bytes(message) : getBytes(message);
    return signEvmMessage(this.#client, this.#wallet, bytes, this.#options);
  }

  async signTypedData(
    domain: TypedDataDomain,
    types: Record<string, TypedDataField[]>,
    value: Record<string, unknown>,
  ): Promise<string> {
    const data = TypedDataEncoder.getPayload(domain, types, value);
    return signEvmTypedData(this.#client, this.#wallet, data, this.#options);
  }
}
