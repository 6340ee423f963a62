import { bytesTo0xHex } from '../../../../engine/crypto/encoding.ts';
import type { EvmCall, SequenceSimulation, Simulation } from '../../../../ports/chains.ts';
import { rollBack } from '../ledger.ts';
import type { Block } from '../pool.ts';
import type { EvmState } from './frame.ts';
import { BLOCK_GAS_LIMIT, runEvm } from './machine.ts';
import { gasBefore, planAuthorizations } from './plan.ts';

/** Executes a call as in a block, then rolls back. */
export function dryRun(state: EvmState, block: Block, call: EvmCall): Simulation {
  return rollBack(state.store, () => tryCall(state, block, call));
}

/** Executes calls one after the other as in a block, then rolls all of them back. */
export function dryRunAll(state: EvmState, block: Block, calls: readonly EvmCall[]): SequenceSimulation {
  return rollBack(state.store, () => {
    const units: bigint[] = [];
    for (const [index, call] of calls.entries()) {
      const simulation = tryCall(state, block, call);
      if (!simulation.succeeds) return { ...simulation, index };
      units.push(simulation.units);
    }
    return { succeeds: true, units };
  });
}

function tryCall(state: EvmState, block: Block, call: EvmCall): Simulation {
  const sender = call.from.toLowerCase();
  const calls = [{ to: call.to?.toLowerCase() ?? null, value: call.value, data: bytesTo0xHex(call.data) }];
  const authorizations = call.authorizationList ?? [];
  const plan = {
    sender,
    calls,
    authorizations: planAuthorizations(authorizations),
    gasLimit: BLOCK_GAS_LIMIT,
    ...gasBefore(calls, { accessList: [], authorizations }),
    sentinel: null,
  };
  const nonce = state.accounts.nonce(sender, '');
  state.accounts.setNonce(sender, '', nonce + 1);
  if (call.delegatedTo !== undefined) state.accounts.setDelegate(sender, call.delegatedTo.toLowerCase());
  const { gasNeeded, revert } = runEvm(state, plan, { nonce, block, isIncluded: false });
  if (revert === undefined) return { succeeds: true, units: gasNeeded };
  return {
    succeeds: false,
    reason: revert.isShortfall ? 'insufficient_funds' : 'reverts',
    message: revert.message,
  };
}
