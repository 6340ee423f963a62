import { bcs } from '@mysten/sui/bcs';
import { Transaction, type TransactionArgument } from '@mysten/sui/transactions';
import { describe, expect, test } from 'vitest';
import { InvalidTransactionError } from '../../../src/engine/signing/signing-errors.ts';
import { decodeSuiIntentMessage, type SuiCommand } from '../../../src/engine/signing/sui.ts';

const sender = `0x${'ab'.repeat(32)}`;
const recipient = `0x${'cd'.repeat(32)}`;
const reference = {
  objectId: sender,
  version: '1',
  digest: bcs.ObjectDigest.parse(Uint8Array.of(32, ...new Uint8Array(32))),
};

async function intentMessage(
  compose: (transaction: Transaction) => void,
  gasOwner = sender,
): Promise<Uint8Array> {
  const transaction = new Transaction();
  transaction.setSender(sender);
  transaction.setGasOwner(gasOwner);
  transaction.setGasPrice(1000);
  transaction.setGasBudget(5_000_000);
  transaction.setGasPayment([reference]);
  compose(transaction);
  return Uint8Array.of(0, 0, 0, ...(await transaction.build()));
}

async function commandsOf(compose: (transaction: Transaction) => void): Promise<Partial<SuiCommand>[]> {
  const decoded = decodeSuiIntentMessage(await intentMessage(compose));
  return (decoded?.commands ?? []).map(({ encoded: _encoded, ...command }) => command);
}

describe('the amount of a Sui transfer', () => {
  const split = (transaction: Transaction, ...amounts: number[]): TransactionArgument[] =>
    [...transaction.splitCoins(transaction.gas, amounts)].slice(0, amounts.length);

  test('the amount of a Sui transfer is the sum of the split coins', async () => {
    const commands = await commandsOf((transaction) => {
      const [first, second] = split(transaction, 5, 7) as [TransactionArgument, TransactionArgument];
      transaction.transferObjects([first, second], recipient);
    });
    expect(commands).toEqual([
      { commandName: 'SplitCoins' },
      { commandName: 'TransferObjects', recipient, amount: 12n },
    ]);
  });

  test('the amount of a Sui transfer is unknown for the gas coin and for objects', async () => {
    const transfers = await Promise.all([
      commandsOf((transaction) => transaction.transferObjects([transaction.gas], recipient)),
      commandsOf((transaction) => transaction.transferObjects([transaction.objectRef(reference)], recipient)),
    ]);
    for (const [transfer] of transfers) {
      expect(transfer).toEqual({ commandName: 'TransferObjects', recipient, amount: undefined });
    }
  });

  test('the amount of a Sui transfer is unknown for a coin that other coins were merged into', async () => {
    const commands = await commandsOf((transaction) => {
      const coin = transaction.splitCoins(transaction.gas, [5]);
      transaction.mergeCoins(coin, [transaction.objectRef(reference)]);
      transaction.transferObjects([coin], recipient);
    });
    expect(commands.at(-1)).toEqual({ commandName: 'TransferObjects', recipient, amount: undefined });
  });

  test('the amount of a Sui transfer is unknown if it is an object, and the recipient if it is a result', async () => {
    const commands = await commandsOf((transaction) => {
      const [coin, other] = split(transaction, 5, 6) as [TransactionArgument, TransactionArgument];
      transaction.transferObjects([coin], other);
    });
    expect(commands.at(-1)).toEqual({ commandName: 'TransferObjects', recipient: undefined, amount: 5n });
  });
});

describe('merged coins', () => {
  const shared = { objectId: recipient, initialSharedVersion: 1, mutable: true };
  type Coins = Record<'gas' | 'own' | 'split' | 'shared' | 'received', TransactionArgument>;

  function coinsOf(transaction: Transaction): Coins {
    return {
      gas: transaction.gas,
      own: transaction.objectRef(reference),
      split: transaction.splitCoins(
        transaction.objectRef({ ...reference, objectId: `0x${'ef'.repeat(32)}` }),
        [5],
      ),
      shared: transaction.sharedObjectRef(shared),
      received: transaction.receivingRef({ ...reference, objectId: recipient }),
    };
  }
  const merging = (into: keyof Coins, from: keyof Coins, gasOwner?: string) =>
    intentMessage((transaction) => {
      const coins = coinsOf(transaction);
      transaction.mergeCoins(coins[into], [coins[from]]);
    }, gasOwner);

  test('merged coins of one account are read', async () => {
    for (const [into, from] of [
      ['gas', 'own'],
      ['gas', 'split'],
      ['own', 'split'],
      ['split', 'own'],
      ['own', 'shared'],
    ] as const) {
      expect(decodeSuiIntentMessage(await merging(into, from)), `${from} into ${into}`).toBeDefined();
    }
    expect(decodeSuiIntentMessage(await merging('own', 'split', recipient))).toBeDefined();
  });

  // Coins have `store`, so anyone may share one and take what others merge into it: `TransferObjects` is not needed.
  test('merged coins are refused if they go into an object that not only the sender owns', async () => {
    for (const into of ['shared', 'received'] as const) {
      const message = await merging(into, 'own');
      expect(() => decodeSuiIntentMessage(message), into).toThrow('got one into another object');
    }
  });

  // The gas coin is the sponsor's: coins that are merged into it are theirs, and its coins that are merged elsewhere the
  // sender's.
  test('merged coins are refused if they go from the sender to a sponsor, or back', async () => {
    for (const [into, from] of [
      ['gas', 'own'],
      ['gas', 'split'],
    ] as const) {
      const message = await merging(into, from, recipient);
      expect(() => decodeSuiIntentMessage(message), `${from} into ${into}`).toThrow('gas coin of a sponsor');
    }
    const back = await intentMessage((transaction) => {
      const coin = transaction.splitCoins(transaction.gas, [5]);
      transaction.mergeCoins(transaction.objectRef(reference), [coin]);
    }, recipient);
    expect(() => decodeSuiIntentMessage(back)).toThrow('gas coin of a sponsor');
    const transfer = await intentMessage(
      (transaction) => transaction.transferObjects([transaction.gas], sender),
      recipient,
    );
    expect(decodeSuiIntentMessage(transfer)?.commands).toHaveLength(1);
  });
});

describe('a Sui intent message', () => {
  test('a Sui intent message of another intent is not a transaction', () => {
    expect(decodeSuiIntentMessage(Uint8Array.of(3, 0, 0, 5, 104, 101, 108, 108, 111))).toBeUndefined();
    expect(decodeSuiIntentMessage(new Uint8Array(2))).toBeUndefined();
  });

  test.each([
    [
      'calls a function',
      (transaction: Transaction) =>
        transaction.moveCall({ target: '0x2::coin::zero', typeArguments: ['0x2::sui::SUI'] }),
    ],
    [
      'makes a vector',
      (transaction: Transaction) => transaction.makeMoveVec({ elements: [transaction.objectRef(reference)] }),
    ],
    [
      'publishes',
      (transaction: Transaction) => transaction.publish({ modules: [[1, 2, 3]], dependencies: [] }),
    ],
  ])('a Sui intent message that %s is refused', async (_what, compose) => {
    const message = await intentMessage((transaction) => {
      compose(transaction);
    });
    expect(() => decodeSuiIntentMessage(message)).toThrow(InvalidTransactionError);
  });

  test('a Sui intent message that is truncated or extended is refused', async () => {
    const message = await intentMessage((transaction) =>
      transaction.transferObjects([transaction.gas], recipient),
    );
    expect(() => decodeSuiIntentMessage(message.subarray(0, -1))).toThrow(InvalidTransactionError);
    expect(() => decodeSuiIntentMessage(Uint8Array.of(...message, 0))).toThrow(InvalidTransactionError);
  });
});
