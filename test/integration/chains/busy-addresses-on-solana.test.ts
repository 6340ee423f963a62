import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import type { ChainTransfer, SolanaChain } from '../../../src/ports/chains.ts';
import { genesisHash } from '../../support/litesvm-node.ts';
import { type Scripted, type ScriptedNode, startScriptedNode } from '../../support/scripted-node.ts';

// Anybody can name an address in as many transactions as he likes. They must hide no deposit, and delay no other
// address.

const caip2 = `solana:${genesisHash.slice(0, 32)}`;

interface Transaction {
  readonly hash: string;
  readonly slot: number;
  readonly to: string;
  /** 0: it failed. */
  readonly lamports: number;
}

/** The transactions of a chain, oldest first. */
function makeLedger() {
  let made = 0;
  const ledger = {
    slot: 1000,
    transactions: [] as Transaction[],
    /** Adds transactions to the current slot, and returns their signatures. */
    add(to: string, lamports: number, count = 1): string[] {
      return Array.from({ length: count }, () => {
        // Signatures are not in the order of their transactions.
        const hash = `signature-${String((made * 7919) % 100_003).padStart(6, '0')}`;
        made += 1;
        ledger.transactions.push({ hash, slot: ledger.slot, to, lamports });
        return hash;
      });
    },
  };
  return ledger;
}
type Ledger = ReturnType<typeof makeLedger>;

interface Terms {
  readonly before?: string;
  readonly limit: number;
}

/** How a node differs from others. */
interface Quirks {
  readonly order?: (a: Transaction, b: Transaction) => number;
  /** Signatures that it has forgotten. */
  readonly forgotten?: ReadonlySet<string>;
  readonly isHidden?: (transaction: Transaction) => boolean;
}

function startNode(ledger: Ledger, { order = () => 0, forgotten, isHidden }: Quirks = {}) {
  return startScriptedNode((method, [first, second]): Scripted => {
    const known = ledger.transactions.filter((each) => isHidden?.(each) !== true);
    if (method === 'getGenesisHash') return { result: genesisHash };
    if (method === 'getSlot') return { result: ledger.slot };
    if (method === 'getSignatureStatuses') {
      const isKnown = !forgotten?.has((first as string[])[0]!);
      return { result: { context: { slot: 1 }, value: [isKnown ? { slot: 1, err: null } : null] } };
    }
    if (method === 'getTransaction') return { result: shown(known.find(({ hash }) => hash === first)!) };
    const { before, limit } = second as Terms;
    if (before !== undefined && forgotten?.has(before)) return { result: [] };
    const listed = known
      .filter(({ to }) => to === first)
      .toReversed()
      .toSorted((a, b) => b.slot - a.slot || order(a, b));
    const start = before === undefined ? 0 : listed.findIndex(({ hash }) => hash === before) + 1;
    return {
      result: listed
        .slice(start, start + limit)
        .map(({ hash, slot, lamports }) => ({ signature: hash, slot, err: errorOf(lamports) })),
    };
  });
}

const errorOf = (lamports: number) => (lamports === 0 ? { InstructionError: [0, 'Custom'] } : null);

function shown({ slot, to, lamports }: Transaction) {
  const [preBalances, postBalances] = [
    [10 ** 9, 0],
    [10 ** 9 - lamports, lamports],
  ];
  return {
    slot,
    blockTime: 1_767_225_600,
    meta: { err: errorOf(lamports), preBalances, postBalances },
    transaction: { message: { accountKeys: ['payer', to] } },
  };
}

/** Reads the transfers to these addresses page by page. */
function makeReader(nodes: readonly ScriptedNode[], addresses: readonly string[]) {
  const chain = connectChains(
    [{ caip2, urls: nodes.map(({ url }) => url), compareAgainMs: 1 }],
    silentLog,
  ).find(caip2) as SolanaChain;
  const watched = {
    among: async (some: readonly string[]) => new Set(some.filter((address) => addresses.includes(address))),
    nextOnSolana: async (after = '', limit: number) =>
      addresses.filter((address) => address > after).slice(0, limit),
  };
  let after: string | undefined;
  const found: ChainTransfer[] = [];
  return {
    /** Signatures of the transfers so far. */
    hashes: () => found.map(({ hash }) => hash),
    async read(pages = 1): Promise<void> {
      for (let page = 0; page < pages; page += 1) {
        const { transfers, position } = await chain.transfersAfter!({ after, limit: 100, watched });
        after = position;
        found.push(...transfers);
      }
    },
  };
}

describe('an address that many transactions name', () => {
  let ledger: Ledger;
  let node: ScriptedNode;
  beforeEach(async () => {
    ledger = makeLedger();
    node = await startNode(ledger);
  });
  afterEach(() => node[Symbol.asyncDispose]());

  /** A deposit, and after it more failed transactions than three pages contain. */
  function bury(address: string): string {
    ledger.slot += 1;
    const [hash] = ledger.add(address, 5_000);
    for (let slot = 0; slot < 35; slot += 1) {
      ledger.slot += 1;
      ledger.add(address, 0, 100);
    }
    return hash!;
  }

  test('an address that many transactions name keeps its deposits, while the other addresses are read without delay', async () => {
    const reader = makeReader([node], ['busy', 'quiet']);
    await reader.read();
    const buried = bury('busy');
    const [other] = ledger.add('quiet', 7_000);
    for (let page = 0; page < 4; page += 1) {
      const asked = node.calls.length;
      await reader.read();
      expect(reader.hashes()[0]).toBe(other);
      expect(node.calls.length - asked).toBeLessThanOrEqual(5);
    }
    expect(reader.hashes()).toEqual([other, buried]);
    await reader.read(2);
    expect(reader.hashes()).toHaveLength(2);
  });

  test('an address that many transactions name is read up to date after the rounds that have passed meanwhile', async () => {
    const reader = makeReader([node], ['busy', 'quiet']);
    await reader.read();
    const expected = [bury('busy')];
    for (let page = 0; page < 12; page += 1) {
      ledger.slot += 1;
      expected.push(...ledger.add('busy', 1_000), ...ledger.add('quiet', 1_000));
      await reader.read();
    }
    await reader.read(3);
    expect(reader.hashes().toSorted()).toEqual(expected.toSorted());
  });

  test('an address that many transactions name has every deposit of a slot reported once, in pages', async () => {
    const reader = makeReader([node], ['busy']);
    await reader.read();
    ledger.slot += 1;
    const expected = ledger.add('busy', 1_000, 40);
    ledger.slot += 1;
    expected.push(...ledger.add('busy', 1_000, 40));
    await reader.read();
    expect(reader.hashes()).toHaveLength(25);
    await reader.read(4);
    expect(reader.hashes().toSorted()).toEqual(expected.toSorted());
  });
});

test('nodes that list newer transactions, or those of a slot in another order, agree', async () => {
  const ledger = makeLedger();
  await using first = await startNode(ledger);
  // It has not received the newest transactions of the slot after the round.
  await using second = await startNode(ledger, {
    order: (a, b) => (a.hash < b.hash ? -1 : 1),
    isHidden: ({ slot, hash }) => slot === 1031 && hash.endsWith('7'),
  });
  const reader = makeReader([first, second], ['busy']);
  await reader.read();
  const expected: string[] = [];
  for (let slot = 0; slot < 30; slot += 1) {
    ledger.slot += 1;
    expected.push(...ledger.add('busy', 1_000, 2));
    ledger.add('busy', 0, 70);
  }
  ledger.slot = 1031;
  ledger.add('busy', 0, 500);
  ledger.slot = 1030;
  await reader.read(6);
  expect(reader.hashes().toSorted()).toEqual(expected.toSorted());
});

test('a node that forgets where its list was continued is asked from the newest transaction on', async () => {
  const ledger = makeLedger();
  const forgotten = new Set<string>();
  await using node = await startNode(ledger, { forgotten });
  const reader = makeReader([node], ['busy']);
  await reader.read();
  ledger.slot += 1;
  const [deposit] = ledger.add('busy', 1_000);
  for (let slot = 0; slot < 15; slot += 1) {
    ledger.slot += 1;
    ledger.add('busy', 0, 100);
  }
  await reader.read();
  for (const { hash, lamports } of ledger.transactions) if (lamports === 0) forgotten.add(hash);
  await reader.read();
  expect(reader.hashes()).toEqual([]);
  forgotten.clear();
  await reader.read(2);
  expect(reader.hashes()).toEqual([deposit]);
});

test('an address that nodes disagree about does not stop the others', async () => {
  const ledger = makeLedger();
  await using honest = await startNode(ledger);
  let isLying = true;
  await using liar = await startNode(ledger, { isHidden: ({ to }) => isLying && to === 'disputed' });
  const reader = makeReader([honest, liar], ['disputed', 'quiet']);
  await reader.read();
  ledger.slot += 1;
  const [disputed] = ledger.add('disputed', 1_000);
  const [quiet] = ledger.add('quiet', 1_000);
  await reader.read();
  expect(reader.hashes()).toEqual([quiet]);
  isLying = false;
  await reader.read();
  expect(reader.hashes()).toEqual([quiet, disputed]);
});
