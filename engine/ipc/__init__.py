"""How clients and the engine meet and talk: messages, frames, addresses, who is at the other end."""
