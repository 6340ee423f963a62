import type { Handler } from '../control-plane.ts';
import type { Operations } from '../generated/operations.ts';

type Document = Operations['getControlDocument']['response'];

export const run: Handler<'getControlDocument'> = async (_input, { document }) => document() as Document;
