import { bcs } from '@mysten/sui/bcs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { expect, test } from 'vitest';
import { rawSign } from '../../../../src/engine/signing/sign-with-key.ts';
import { decodeSuiIntentMessage } from '../../../../src/engine/signing/sui.ts';
import {
  hex,
  judgeTimeout,
  type RandomWallet,
  randomWallets,
  seed,
  unhex,
  walletCount,
} from './random-wallets.ts';

const suiAddress = (wallet: RandomWallet, label: string) => `0x${hex(wallet.bytes(label, 32))}`;
const digest = (wallet: RandomWallet) =>
  bcs.ObjectDigest.parse(Uint8Array.of(32, ...wallet.bytes('digest', 32)));

async function paymentOf(wallet: RandomWallet): Promise<{ bytes: Uint8Array; expected: object }> {
  const amounts = [1 + wallet.number('a', 2 ** 40), 1 + wallet.number('b', 2 ** 40)];
  const recipient = suiAddress(wallet, 'to');
  const isMerged = wallet.number('merged', 3) === 0;
  const transaction = new Transaction();
  const [first, second] = transaction.splitCoins(transaction.gas, amounts);
  if (isMerged) transaction.mergeCoins(first as never, [second as never]);
  transaction.transferObjects(isMerged ? [first as never] : [first as never, second as never], recipient);
  transaction.setSender(wallet.address);
  transaction.setGasOwner(wallet.address);
  transaction.setGasPrice(1000);
  transaction.setGasBudget(5_000_000);
  transaction.setGasPayment([{ objectId: suiAddress(wallet, 'gas'), version: '7', digest: digest(wallet) }]);
  if (wallet.number('epoch', 2) === 1) transaction.setExpiration({ Epoch: wallet.index });
  const amount = isMerged ? undefined : BigInt((amounts[0] as number) + (amounts[1] as number));
  const transfer = { commandName: 'TransferObjects', recipient, amount } as const;
  return {
    bytes: await transaction.build(),
    expected: {
      sender: wallet.address,
      gasOwner: wallet.address,
      gasBudget: 5_000_000n,
      commands: [
        { commandName: 'SplitCoins' },
        ...(isMerged ? [{ commandName: 'MergeCoins' } as const] : []),
        transfer,
      ],
    },
  };
}

test(
  `@mysten/sui agrees on ${walletCount} addresses, signatures and sent amounts, seed ${seed}`,
  async () => {
    for await (const wallet of randomWallets('sui')) {
      const pair = Ed25519Keypair.fromSecretKey(wallet.secret);
      expect(pair.toSuiAddress()).toBe(wallet.address);
      const { bytes, expected } = await paymentOf(wallet);
      const message = Uint8Array.of(0, 0, 0, ...bytes);
      expect(decodeSuiIntentMessage(message)).toMatchObject(expected);
      const signature = await rawSign('sui', wallet.secret, {
        bytes: `0x${hex(message)}`,
        encoding: 'hex',
        hash_function: 'blake2b256',
      });
      const publicKey = pair.getPublicKey();
      const serialized = Buffer.concat([Buffer.of(0), unhex(signature), publicKey.toRawBytes()]).toString(
        'base64',
      );
      expect(await publicKey.verifyTransaction(bytes, serialized)).toBe(true);
    }
  },
  judgeTimeout,
);
