import { type Hex, keccak256, parseTransaction, recoverTransactionAddress } from 'viem';
import type {
  BroadcastOutcome,
  ChainStatus,
  Chains,
  EvmCall,
  EvmChain,
  Simulation,
} from '../../src/ports/chains.ts';

/** A transaction on the chain, decoded by viem. */
interface SeenTransaction {
  readonly hash: Hex;
  readonly sender: string;
  readonly nonce: number;
  readonly transaction: ReturnType<typeof parseTransaction>;
}

export interface ScriptedChain extends EvmChain, Chains {
  /** All broadcasts in order, including repeated ones. */
  readonly broadcasts: SeenTransaction[];
  readonly calls: EvmCall[];
  /** While true, the chain cannot be reached. */
  isDown: boolean;
  /** The responses to the next broadcasts. */
  readonly refusals: Extract<BroadcastOutcome, { isAccepted: false }>[];
  simulation: Simulation;
  balance: bigint;
  suggested: { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint | undefined };
  /** Runs during each broadcast, before the chain accepts it. */
  duringBroadcast: () => Promise<void>;
  /** Sets the status of a transaction. Undefined makes the transaction unknown. */
  setStatus(hash: string, status: ChainStatus | undefined): void;
  include(hash: string, options?: { isFinal?: boolean }): void;
}

const chainId = 31337n;
export const caip2 = 'eip155:31337';

/**
 * An EVM chain that a test controls: a separate adapter that reads transactions with viem. By default, it accepts
 * everything, counts nonces like a node, and mines nothing.
 */
export function scriptChain(): ScriptedChain {
  const statuses = new Map<string, ChainStatus>();
  const sent = new Map<string, number>();
  const ask = <T>(answer: T): Promise<T> =>
    chain.isDown ? Promise.reject(new Error('connect ECONNREFUSED')) : Promise.resolve(answer);
  const chain: ScriptedChain = {
    kind: 'evm',
    caip2,
    chainId,
    broadcasts: [],
    calls: [],
    isDown: false,
    refusals: [],
    simulation: { succeeds: true, units: 21_000n },
    balance: 10n ** 20n,
    suggested: { maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n },
    duringBroadcast: async () => undefined,
    find: (id) => (id === caip2 ? chain : undefined),
    balances: (_address, tokens) => ask(tokens.map((token) => (token === null ? chain.balance : 0n))),
    nonce: (address) => ask(BigInt(sent.get(address.toLowerCase()) ?? 0)),
    fees: () => ask(chain.suggested),
    latestSeconds: () => ask(1_767_225_600),
    simulate: (calls) => {
      chain.calls.push(...calls);
      const { simulation } = chain;
      return ask(
        simulation.succeeds
          ? { succeeds: true as const, units: calls.map(() => simulation.units) }
          : { ...simulation, index: 0 },
      );
    },
    movementsOf: () => ask({ blockNumber: 7n, movements: [] }),
    read: () => ask(new Uint8Array()),
    code: () => ask(new Uint8Array()),
    async broadcast(bytes) {
      await ask(undefined);
      await chain.duringBroadcast();
      const hex = `0x${Buffer.from(bytes).toString('hex')}` as const;
      const sender = await recoverTransactionAddress({ serializedTransaction: hex as never });
      const transaction = parseTransaction(hex as never) as ReturnType<typeof parseTransaction>;
      const hash = keccak256(hex);
      const nonce = transaction.nonce ?? 0;
      chain.broadcasts.push({ hash, sender, nonce, transaction });
      const refusal = chain.refusals.shift();
      if (refusal !== undefined) return refusal;
      // Like a node, it counts only consecutive nonces.
      if (nonce === (sent.get(sender.toLowerCase()) ?? 0)) sent.set(sender.toLowerCase(), nonce + 1);
      if (!statuses.has(hash)) statuses.set(hash, { kind: 'pending' });
      return { isAccepted: true, hash };
    },
    statusOf: (hash) => ask(statuses.get(hash) ?? { kind: 'unknown', isExpired: false }),
    setStatus(hash, status) {
      if (status === undefined) statuses.delete(hash);
      else statuses.set(hash, status);
    },
    include: (hash, { isFinal = false } = {}) =>
      void statuses.set(hash, {
        kind: 'included',
        isFinal,
        blockNumber: 7n,
        blockTimestampSeconds: 1_767_225_600,
        feePaid: 42_000n,
      }),
  };
  return chain;
}
