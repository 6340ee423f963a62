import { type ReplayInput, replayPolicy } from '../../domain/requests/policy-desk/replay-policy.ts';
import type { DeskHandler } from '../control-plane.ts';
import type { PolicyReplay } from '../generated/schemas.ts';

export const run: DeskHandler<'replayPolicy'> = ({ body }, { atDesk }) =>
  // The domain's types are the read-only versions of the contract's types.
  atDesk(async (context) => (await replayPolicy(context, body as ReplayInput)) as PolicyReplay);
