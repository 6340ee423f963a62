import { keyPairFromSeed, signVerify } from '@ton/crypto';
import { beginCell, internal, SendMode, WalletContractV4 } from '@ton/ton';
import { expect, test } from 'vitest';
import { rawSign } from '../../../../src/engine/signing/sign-with-key.ts';
import { hex, judgeTimeout, randomWallets, seed, unhex, walletCount } from './random-wallets.ts';

test(
  `@ton/ton agrees on ${walletCount} addresses and transfers, seed ${seed}`,
  async () => {
    for await (const wallet of randomWallets('ton')) {
      const { publicKey, secretKey } = keyPairFromSeed(Buffer.from(wallet.secret));
      expect(`00${hex(publicKey)}`).toBe(wallet.publicKey);
      const contract = WalletContractV4.create({ workchain: 0, publicKey });
      expect(contract.address.toString({ bounceable: false })).toBe(wallet.address);
      const messages = [
        internal({ to: contract.address, value: BigInt(wallet.number('value', 2 ** 40)), body: 'memo' }),
      ];
      const transfer = contract.createTransfer({
        seqno: wallet.index,
        secretKey,
        messages,
        sendMode: SendMode.PAY_GAS_SEPARATELY,
        timeout: 1_767_225_600,
      });
      // A transfer's body is the signature and then what was signed.
      const slice = transfer.beginParse();
      const theirs = slice.loadBuffer(64);
      const hash = beginCell().storeSlice(slice).endCell().hash();
      const signature = unhex(await rawSign('ton', wallet.secret, { hash: `0x${hex(hash)}` }));
      expect(hex(signature)).toBe(hex(theirs));
      expect(signVerify(hash, Buffer.from(signature), publicKey)).toBe(true);
    }
  },
  judgeTimeout,
);
