import {
  type Holding,
  prepareReindex,
  reindexAutomation,
} from '../../domain/money/automation-runs/reindex-automation.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'reindexWalletAutomation', Holding> = ({ body }, context) =>
  prepareReindex(context, body);

export const run: PreparedHandler<'reindexWalletAutomation', Holding> = ({ body }, context, prepared) =>
  reindexAutomation(context, body, prepared);
