import { ApiError } from '../errors.ts';
import type { RecordDenial } from './audit.ts';
import { type Authenticate, readClientBasic, readClientCredentials } from './authenticate.ts';
import type { PipelineOptions } from './pipeline.ts';
import type { RateLimiter } from './rate-limit.ts';
import type { OperationHandlers, RequestState } from './request-state.ts';

/** The apps that leave a cell, or have left it. */
export interface MovesOfCell {
  /**
   * Returns whether an app leaves the cell, or has left it.
   *
   * @throws ApiError unavailable
   */
  isLeaving(appId: string): Promise<boolean>;
  /**
   * Runs work for an app. The app does not leave before the work has ended.
   *
   * @throws ApiError unavailable if the app leaves, or has left.
   */
  during<T>(appId: string, work: () => Promise<T>): Promise<T>;
}

/** What serves the requests for the apps of one cell: everything that belongs to the cell's database. */
export interface Cell {
  readonly name: string;
  readonly authenticate: Authenticate;
  readonly handlers: OperationHandlers;
  readonly rateLimiter: RateLimiter | undefined;
  readonly recordDenial: RecordDenial;
  /** Undefined if no app can leave, because the deployment has one cell. */
  readonly moves?: MovesOfCell | undefined;
}

interface RouteOptions {
  /** The ids of all operations. */
  readonly operations: readonly string[];
  /**
   * Returns the cell of an app. For an app that is in no cell, returns any cell, which then refuses it.
   *
   * @param address the address of the caller, who has proved nothing yet.
   * @throws ApiError unavailable while the cell, or the directory of cells, is unavailable; too_many_requests for an
   * address that has sent too many wrong credentials.
   */
  readonly cellOf: (appId: string, address: string) => Cell | Promise<Cell>;
  /** Called when an app has proved that it is in a cell. */
  readonly confirm: (appId: string, cell: string) => void;
  /** Returns the cell that handles requests that name no app. */
  readonly anyCell: () => Cell;
  /** The maximum number of requests of one cell in progress, so that a cell that hangs leaves room for the others. */
  readonly maxPerCell: number;
}

/** Returns the parts of a pipeline that send each request to the cell of its app. */
export function routeByCell({
  operations,
  cellOf,
  confirm,
  anyCell,
  maxPerCell,
}: RouteOptions): Required<
  Pick<PipelineOptions, 'authenticate' | 'handlers' | 'recordDenial' | 'rateLimiter'>
> {
  const inProgress = new Map<string, number>();
  const known = new Map<string, Cell>();

  const enter = (state: RequestState, { name }: Cell): void => {
    if (state.cell === name) return;
    const count = inProgress.get(name) ?? 0;
    if (count >= maxPerCell) throw cellUnavailable('the cell of this app has too many requests in progress');
    inProgress.set(name, count + 1);
    state.response.once('close', () => inProgress.set(name, inProgress.get(name)! - 1));
  };
  const of = ({ cell }: RequestState): Cell => (cell === undefined ? anyCell() : known.get(cell)!);
  const rateLimiter: RateLimiter = {
    countRequest: async (state) => (await of(state).rateLimiter?.countRequest(state)) ?? {},
    countWork: async (state) => of(state).rateLimiter?.countWork(state),
    countPage: (address, bytes) => anyCell().rateLimiter?.countPage(address, bytes),
    chargeGuess: (state) => of(state).rateLimiter?.chargeGuess(state),
  };
  return {
    rateLimiter,
    async authenticate(state) {
      const appId = appIdOf(state);
      if (appId === undefined) return await anyCell().authenticate(state);
      const cell = await cellOf(appId, state.remoteAddress);
      known.set(cell.name, cell);
      enter(state, cell);
      state.cell = cell.name;
      await staying(cell, appId, () => cell.authenticate(state));
      if (state.app !== undefined) confirm(state.app.id, cell.name);
    },
    handlers: Object.fromEntries(
      operations.map((id) => [
        id,
        (context, state) => {
          const cell = of(state);
          return staying(cell, appIdOf(state), () => cell.handlers[id]!(context, state));
        },
      ]),
    ),
    recordDenial: (state, error) => of(state).recordDenial(state, error),
  };
}

/** Runs work for an app, which does not leave its cell before the work has ended. */
async function staying<T>({ moves }: Cell, appId: string | undefined, work: () => Promise<T>): Promise<T> {
  return moves === undefined || appId === undefined ? await work() : await moves.during(appId, work);
}

/** Creates the refusal of a request whose cell is unavailable. */
export function cellUnavailable(message: string): ApiError {
  return new ApiError('unavailable', message, { headers: { 'retry-after': '2' } });
}

/** Returns the id of the app that a request names, before its credentials are checked. */
function appIdOf(state: RequestState): string | undefined {
  const { headers, route, isBodyRead } = state;
  const named = headers['service-app-id'];
  if (route?.operation.security === 'oauth-client') {
    if (headers.authorization !== undefined) return readClientBasic(headers.authorization)[0]?.appId;
    return isBodyRead ? readClientCredentials(state).clientId : undefined;
  }
  const { app_id: ofPath } = route?.params ?? {};
  // A public operation is about the app in its path, whatever the header says.
  if (route?.operation.security === 'none' && ofPath !== undefined) return ofPath;
  return typeof named === 'string' ? named : ofPath;
}
