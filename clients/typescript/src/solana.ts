import {
  address,
  getBase64EncodedWireTransaction,
  getTransactionDecoder,
  type MessagePartialSigner,
  type SignatureBytes,
  type TransactionPartialSigner,
} from '@solana/kit';
import type { CallOptions, Client } from './client.ts';
import type { SigningWallet } from './evm.ts';

/** A signer of @solana/kit that signs with a wallet of the API. `options` are those of each call, such as the signers. */
export function solanaSigner(
  client: Client,
  wallet: SigningWallet,
  options?: CallOptions,
): MessagePartialSigner & TransactionPartialSigner {
  const own = address(wallet.address);
  const path = { wallet_id: wallet.id };
  const named = (signature: Uint8Array | null | undefined) => ({ [own]: signature as SignatureBytes });
  return {
    address: own,
    signMessages: (messages) =>
      Promise.all(
        messages.map(async ({ content }) => {
          const params = { message: Buffer.from(content).toString('base64'), encoding: 'base64' } as const;
          const answer = await client.walletRpc({ path, body: { method: 'signMessage', params } }, options);
          if (answer.method !== 'signMessage') throw new TypeError(`unexpected answer: ${answer.method}`);
          return named(new Uint8Array(Buffer.from(answer.data.signature, 'base64')));
        }),
      ),
    signTransactions: (transactions) =>
      Promise.all(
        transactions.map(async (transaction) => {
          const params = {
            transaction: getBase64EncodedWireTransaction(transaction),
            encoding: 'base64',
          } as const;
          const answer = await client.walletRpc(
            { path, body: { method: 'signTransaction', params } },
            options,
          );
          if (answer.method !== 'signTransaction') throw new TypeError(`unexpected answer: ${answer.method}`);
          const signed = new Uint8Array(Buffer.from(answer.data.signed_transaction, 'base64'));
          return named(getTransactionDecoder().decode(signed).signatures[own]);
        }),
      ),
  };
}
