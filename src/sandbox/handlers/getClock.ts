import { clockView } from '../clock-view.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'getClock'> = async (_input, { clock }) => clockView(clock);
