import { notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { requireLog } from '../requests/require-log.ts';
import { sentRequest } from '../requests/sent-request.ts';

export const run: Handler<'replayRequest'> = async ({ path, body }, context) => {
  const found = requireLog(context.requests).find(path.request_id);
  if (found === undefined) throw notFound('Request');
  const { answered } = found;
  const response = await context.ownApi.repeat(answered, body.sign_as, context.signal);
  return sentRequest(response, answered.operation, context.redaction);
};
