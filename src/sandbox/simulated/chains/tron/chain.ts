import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check } from '@scure/base';
import { bytesToHex, utf8ToBytes } from '../../../../engine/crypto/encoding.ts';
import type { BroadcastOutcome, Simulation, TronChain } from '../../../../ports/chains.ts';
import { type Blocks, makeBlocks } from '../blocks.ts';
import { termsOf } from '../chain-terms.ts';
import { assertNodeAvailable, decodeOrRefuse, type Refusal, refuse } from '../decode-or-refuse.ts';
import { fundPlain } from '../fund.ts';
import { makeContractAccounts, makeLedger, NATIVE, rollBack } from '../ledger.ts';
import { makePool, type Pool } from '../pool.ts';
import { knownToken, type Simulated, transfersAfter, transfersOf, type World } from '../world.ts';
import { canPay, makeTronMachine, runTron, type TronState } from './machine.ts';
import { decodeSigned, decodeUnsigned, type TronPlan } from './plan.ts';

const FAUCET_ADDRESS = 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb';
const MAX_SUN = 2n ** 63n - 1n;
const MAX_TOKENS = 2n ** 256n - 1n;
const DAY_MS = 86_400_000;
const base58check = createBase58check(sha256);

interface TronParts {
  readonly world: World;
  readonly caip2: string;
  readonly state: TronState;
  readonly pool: Pool<TronPlan>;
  readonly blocks: Blocks;
  atHead<T>(work: () => T): Promise<T>;
}

/** Simulates one TRON chain. Addresses are in `T…` notation. */
export function simulateTron(world: World, caip2: string): Simulated<TronChain> {
  const parts = makeParts(world, caip2);
  const { state, blocks } = parts;
  return {
    chain: { kind: 'tron', caip2, ...queries(parts), ...transactions(parts) },
    ledger: state.ledger,
    decimalsOf: (tokenAddress) =>
      tokenAddress === null
        ? 6
        : (state.accounts.token(tokenAddress) ?? knownToken(world, caip2, tokenAddress))?.decimals,
    fund: (deposit) =>
      fundPlain({
        ...{ world, caip2, ledger: state.ledger, block: blocks.head(), deposit },
        ...{ faucet: FAUCET_ADDRESS, defaultDecimals: 6, isAddress },
        maxSupply: deposit.tokenAddress === null ? MAX_SUN : MAX_TOKENS,
      }),
    catchUp: () => blocks.catchUp(),
    head: () => blocks.head(),
    mine: (count) => blocks.mine(count),
  };
}

function makeParts(world: World, caip2: string): TronParts {
  const { store, clock, confirmAfterMs } = world;
  const ledger = makeLedger(store, caip2);
  const state = { store, ledger, accounts: makeContractAccounts(store, caip2) };
  const pool = makePool<TronPlan>(store, caip2, world.drawFault);
  const machine = makeTronMachine(state);
  const blocks = makeBlocks({ store, caip2, terms: termsOf(caip2), clock, confirmAfterMs, pool, machine });
  const { atHead } = blocks;
  return { world, caip2, state, pool, blocks, atHead };
}

function queries(
  parts: TronParts,
): Pick<TronChain, 'balances' | 'referenceBlock' | 'transfersOf' | 'transfersAfter'> {
  const { world, caip2, state, blocks, atHead } = parts;
  const text = (address: string) => address;
  return {
    balances: (address, tokens) =>
      atHead(() => tokens.map((token) => state.ledger.balance(address, token ?? NATIVE))),
    referenceBlock: () => atHead(() => referenceOf(caip2, blocks.head().number)),
    transfersOf: (query) => atHead(() => transfersOf(world, caip2, { query, text })),
    transfersAfter: (reading) => atHead(() => transfersAfter(world, caip2, { reading, text })),
  };
}

function transactions(parts: TronParts): Pick<TronChain, 'broadcast' | 'statusOf' | 'simulate'> {
  const { world, state, pool, blocks, atHead } = parts;
  return {
    async broadcast(signedBytes) {
      const decoded = await decodeOrRefuse(() => decodeSigned(signedBytes));
      if ('isAccepted' in decoded) return decoded;
      assertNodeAvailable(decoded.plan.sentinel);
      const outcome = await atHead(() => acceptTransaction(parts, decoded));
      await blocks.catchUp();
      return outcome;
    },
    statusOf: (hash, signedBytes) =>
      atHead(() => {
        const status = pool.status(hash, blocks);
        if (status !== undefined && status.kind !== 'unknown') return status;
        return {
          kind: 'unknown',
          isExpired: decodeSigned(signedBytes).plan.expirationMs <= world.clock.now(),
        };
      }),
    async simulate(rawBytes): Promise<Simulation> {
      const decoded = await decodeOrRefuse(() => decodeUnsigned(rawBytes));
      if ('isAccepted' in decoded)
        return { succeeds: false, reason: decoded.reason, message: decoded.message };
      return atHead(() => {
        const fault = faultOf(parts, decoded.plan);
        if (fault !== undefined) return { succeeds: false, reason: fault.reason, message: fault.message };
        const { revert, energy } = rollBack(state.store, () =>
          runTron(state, decoded.plan, { isIncluded: false }),
        );
        if (revert === undefined) return { succeeds: true, units: energy };
        return { succeeds: false, reason: 'reverts', message: revert.message };
      });
    },
  };
}

function acceptTransaction(
  parts: TronParts,
  { hash, plan, isSigned }: { hash: string; plan: TronPlan; isSigned: boolean },
): BroadcastOutcome {
  const { world, pool, blocks } = parts;
  if (pool.isKnown(hash)) return { isAccepted: true, hash };
  if (!isSigned) return refuse('invalid', "SIGERROR: expected the owner's signature");
  const fault = faultOf(parts, plan);
  if (fault !== undefined) return fault;
  const times = { receivedMs: world.clock.now(), dueMs: blocks.dueMs() };
  pool.add({ hash, sender: plan.owner, lane: '', nonce: undefined, plan, ...times });
  return { isAccepted: true, hash };
}

function faultOf({ world, caip2, state, blocks }: TronParts, plan: TronPlan): Refusal | undefined {
  const nowMs = world.clock.now();
  if (plan.expirationMs <= nowMs) return refuse('stale', 'TRANSACTION_EXPIRATION_ERROR: expired');
  if (plan.expirationMs > nowMs + DAY_MS) {
    return refuse('invalid', 'TRANSACTION_EXPIRATION_ERROR: expected an expiration within a day');
  }
  const { number } = blocks.head();
  const age = (number - Number.parseInt(plan.refBlockBytes, 16)) & 0xffff;
  if (number < age || referenceOf(caip2, number - age).refBlockHash !== plan.refBlockHash) {
    return refuse('stale', 'TAPOS_ERROR: the reference block is not on this chain');
  }
  if (!plan.isContractCall && (plan.amount === 0n || plan.owner === plan.to)) {
    return refuse('invalid', 'CONTRACT_VALIDATE_ERROR: expected a positive amount to another account');
  }
  if (!canPay(state, plan))
    return refuse('insufficient_funds', 'CONTRACT_VALIDATE_ERROR: balance is not sufficient');
  return undefined;
}

// Returns the reference to a block: `ref_block_bytes` is the last 2 bytes of its height, and `ref_block_hash` is bytes
// 8 to 16 of its id.
function referenceOf(caip2: string, height: number): { refBlockBytes: string; refBlockHash: string } {
  const id = sha256(utf8ToBytes(`block ${height} of ${caip2}`));
  return {
    refBlockBytes: (height & 0xffff).toString(16).padStart(4, '0'),
    refBlockHash: bytesToHex(id.subarray(8, 16)),
  };
}

function isAddress(text: string): boolean {
  try {
    const bytes = base58check.decode(text);
    return bytes.length === 21 && bytes[0] === 0x41;
  } catch {
    return false;
  }
}
