import type { Handler } from '../control-plane.ts';
import { scenarios } from '../scenarios/scenarios.ts';

export const run: Handler<'listScenarios'> = async () => ({
  data: scenarios.map(({ name, summary }) => ({ name, summary })),
});
