import { Account, Asset, Keypair, Networks, Operation, TransactionBuilder } from '@stellar/stellar-base';
import { expect, test } from 'vitest';
import { rawSign } from '../../../../src/engine/signing/sign-with-key.ts';
import { hex, judgeTimeout, randomWallets, seed, unhex, walletCount } from './random-wallets.ts';

test(
  `@stellar/stellar-base agrees on ${walletCount} addresses and signatures, seed ${seed}`,
  async () => {
    for await (const wallet of randomWallets('stellar')) {
      const pair = Keypair.fromRawEd25519Seed(Buffer.from(wallet.secret));
      expect(pair.publicKey()).toBe(wallet.address);
      expect(`00${hex(pair.rawPublicKey())}`).toBe(wallet.publicKey);
      const transaction = new TransactionBuilder(new Account(wallet.address, String(wallet.index)), {
        fee: '100',
        networkPassphrase: Networks.PUBLIC,
      })
        .addOperation(
          Operation.payment({
            destination: wallet.address,
            asset: Asset.native(),
            amount: String(1 + wallet.number('amount', 2 ** 30)),
          }),
        )
        .setTimeout(0)
        .build();
      const hash = `0x${hex(transaction.hash())}`;
      const signature = await rawSign('stellar', wallet.secret, { hash });
      expect(pair.verify(transaction.hash(), Buffer.from(unhex(signature)))).toBe(true);
    }
  },
  judgeTimeout,
);
