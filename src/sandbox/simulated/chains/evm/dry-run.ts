import { bytesTo0xHex } from '../../../../engine/crypto/encoding.ts';
import type { EvmCall, SequenceSimulation, Simulation } from '../../../../ports/chains.ts';
import type { ExecutionBlock, Interpreter } from './interpreter.ts';
import { runEvm, TRANSACTION_GAS_CAP } from './machine.ts';
import { makeOverlay } from './overlay.ts';
import { gasBefore, planAuthorizations } from './plan.ts';
import type { EvmState } from './state.ts';

/** An estimate exceeds the minimum gas limit by at most 1/64. */
const TOLERANCE = 64n;
const STIPEND = 2_300n;

/** Executes a call as a block would, without storing anything. */
export async function dryRun(
  interpreter: Interpreter,
  state: EvmState,
  { block, call }: { block: ExecutionBlock; call: EvmCall },
): Promise<Simulation> {
  return (await tryCall(interpreter, state, { block, call })).simulation;
}

/** Executes calls one after the other as a block would, without storing anything. */
export async function dryRunAll(
  interpreter: Interpreter,
  state: EvmState,
  { block, calls }: { block: ExecutionBlock; calls: readonly EvmCall[] },
): Promise<SequenceSimulation> {
  const units: bigint[] = [];
  let before = state;
  for (const [index, call] of calls.entries()) {
    const { simulation, after } = await tryCall(interpreter, before, { block, call });
    if (!simulation.succeeds) return { ...simulation, index };
    units.push(simulation.units);
    before = after;
  }
  return { succeeds: true, units };
}

async function tryCall(
  interpreter: Interpreter,
  state: EvmState,
  { block, call }: { block: ExecutionBlock; call: EvmCall },
): Promise<{ simulation: Simulation; after: EvmState }> {
  const run = await runWith(TRANSACTION_GAS_CAP);
  const after = run.state;
  const { revert, gasNeeded } = run;
  if (revert !== undefined) {
    const reason = revert.isShortfall ? 'insufficient_funds' : 'reverts';
    return { simulation: { succeeds: false, reason, message: revert.message }, after };
  }
  if (!run.needsMoreGas || (await succeedsWith(gasNeeded))) {
    return { simulation: { succeeds: true, units: gasNeeded }, after };
  }
  // A caller keeps 1/64 of its gas in each nested call, and writing a slot requires that more than 2,300 gas is left.
  let [tooLow, enough] = [gasNeeded, TRANSACTION_GAS_CAP];
  const likely = ((gasNeeded + STIPEND) * 64n) / 63n;
  if (likely < enough) {
    if (await succeedsWith(likely)) enough = likely;
    else tooLow = likely;
  }
  while (enough - tooLow > tooLow / TOLERANCE) {
    const middle = enough > 2n * tooLow ? 2n * tooLow : (tooLow + enough) / 2n;
    if (await succeedsWith(middle)) enough = middle;
    else tooLow = middle;
  }
  return { simulation: { succeeds: true, units: enough }, after };

  async function succeedsWith(gasLimit: bigint): Promise<boolean> {
    return (await runWith(gasLimit)).revert === undefined;
  }

  async function runWith(gasLimit: bigint) {
    const overlay = makeOverlay(state);
    const { accounts } = overlay.state;
    const sender = call.from.toLowerCase();
    const calls = [{ to: call.to?.toLowerCase() ?? null, value: call.value, data: bytesTo0xHex(call.data) }];
    const { authorizationList: authorizations = [], accessList = [] } = call;
    const plan = {
      ...{ sender, calls, accessList, gasLimit, sentinel: null },
      authorizations: planAuthorizations(authorizations),
      ...gasBefore(calls, { accessList, authorizations }),
    };
    accounts.setNonce(sender, '', accounts.nonce(sender, '') + 1);
    if (call.delegatedTo !== undefined) accounts.setDelegate(sender, call.delegatedTo.toLowerCase());
    const { gasPrice = state.baseFee } = call;
    const ran = await runEvm(interpreter, overlay, plan, { gasPrice, block, isIncluded: false });
    return { ...ran, state: overlay.state };
  }
}
