import { render } from 'preact';
import { followClock } from './clock-feed.ts';
import { Layout } from './layout.tsx';

followClock();
render(<Layout />, document.getElementById('inspector')!);
