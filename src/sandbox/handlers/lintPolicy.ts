import { type LintInput, lintPolicy } from '../../domain/requests/policy-desk/lint-policy.ts';
import type { DeskHandler } from '../control-plane.ts';
import type { PolicyLint } from '../generated/schemas.ts';

export const run: DeskHandler<'lintPolicy'> = ({ body }, { atDesk }) =>
  // The domain's types are the read-only versions of the contract's types.
  atDesk(async (context) => (await lintPolicy(context, body as LintInput)) as unknown as PolicyLint);
