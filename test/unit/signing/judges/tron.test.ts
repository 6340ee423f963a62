import { TronWeb, utils } from 'tronweb';
import { describe, expect, test } from 'vitest';
import { rawSign, signOffline } from '../../../../src/engine/signing/sign-with-key.ts';
import { decodeTronRawData, type TronRawData } from '../../../../src/engine/signing/tron/raw-data.ts';
import {
  hex,
  judgeTimeout,
  type RandomWallet,
  randomWallets,
  seed,
  unhex,
  walletCount,
} from './random-wallets.ts';

/** Random raw data in the contract's names and as the JSON that tronweb turns into protobuf. */
function randomRawData(wallet: RandomWallet): { ours: TronRawData; theirs: object } {
  const owner_address = TronWeb.address.toHex(wallet.address);
  const other = `41${hex(wallet.bytes('other', 20))}`;
  const isGiven = (label: string) => wallet.number(`${label}?`, 3) > 0;
  const contract =
    wallet.number('kind', 2) === 0
      ? {
          type: 'TransferContract' as const,
          owner_address,
          to_address: other,
          amount: 1 + wallet.number('amount', 2 ** 45),
        }
      : {
          type: 'TriggerSmartContract' as const,
          owner_address,
          contract_address: other,
          ...(isGiven('data') ? { data: hex(wallet.bytes('data', wallet.number('data#', 200))) } : {}),
          ...(isGiven('call') ? { call_value: wallet.number('call', 2 ** 40) } : {}),
          ...(isGiven('token')
            ? { call_token_value: wallet.number('tv', 2 ** 40), token_id: 1_000_001 }
            : {}),
        };
  const common = {
    ref_block_bytes: hex(wallet.bytes('ref', 2)),
    ref_block_hash: hex(wallet.bytes('hash', 8)),
    expiration: 1_767_225_600_000 + wallet.number('expiration', 60_000),
    ...(isGiven('timestamp') ? { timestamp: 1_767_225_600_000 } : {}),
    ...(isGiven('fee') ? { fee_limit: wallet.number('fee', 2 ** 31) } : {}),
    ...(isGiven('memo') ? { data: hex(wallet.bytes('memo', wallet.number('memo#', 50))) } : {}),
  };
  const { type, ...value } = contract;
  const parameter = { value, type_url: `type.googleapis.com/protocol.${type}` };
  return {
    ours: { contract: [contract], ...common },
    theirs: { raw_data: { contract: [{ type, parameter }], ...common } },
  };
}

describe(`tronweb, seed ${seed}`, () => {
  test(
    `agrees on ${walletCount} addresses, transactions and signatures`,
    async () => {
      for await (const wallet of randomWallets('tron')) {
        const privateKey = hex(wallet.secret);
        expect(TronWeb.address.fromPrivateKey(privateKey)).toBe(wallet.address);
        const { ours, theirs } = randomRawData(wallet);
        const message = utils.transaction.txJsonToPb(theirs as never);
        const raw = utils.transaction.txPbToRawDataHex(message).toLowerCase();
        const txID = utils.transaction.txPbToTxID(message).replace('0x', '');
        const { signed_transaction } = await signOffline('tron_signTransaction', wallet.secret, {
          raw_data: ours,
        });
        expect(signed_transaction.slice(0, -130)).toBe(raw);
        const signed = utils.crypto.signTransaction(privateKey, { ...theirs, txID } as never) as unknown as {
          signature: string[];
        };
        expect(signed_transaction.slice(-130)).toBe(signed.signature[0]?.replace('0x', '').toLowerCase());
        expect(decodeTronRawData(unhex(raw))).toMatchObject(ours);
        const signature = await rawSign('tron', wallet.secret, {
          bytes: raw,
          encoding: 'hex',
          hash_function: 'sha256',
        });
        // Without the recovery byte.
        expect(signature).toBe(`0x${signed_transaction.slice(-130, -2)}`);
      }
    },
    judgeTimeout,
  );
});
