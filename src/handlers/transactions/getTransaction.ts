import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getTransaction: Handler<'getTransaction'> = async () => {
  throw notImplemented('getTransaction');
};
