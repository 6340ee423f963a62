import type { Handler } from '../control-plane.ts';
import { sentRequest } from '../requests/sent-request.ts';

export const run: Handler<'signIntent'> = async ({ path, body }, { ownApi, redaction, clock, signal }) => {
  const response = await ownApi.signIntent(path.intent_id, body.sign_as, { nowMs: clock.now(), signal });
  return sentRequest(response, 'authorizeIntent', redaction);
};
