import { render } from 'preact';
import { followClock } from './clock-feed.ts';
import { Layout } from './layout.tsx';
import { followRequests } from './requests/request-feed.tsx';

followClock();
void followRequests();
render(<Layout />, document.getElementById('inspector')!);
