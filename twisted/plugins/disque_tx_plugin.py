"""What ``twistd`` and listeners find: the daemon, and the protocols it speaks."""

from disque_tx.protocols.beanstalk.plugin import BeanstalkPlugin
from disque_tx.protocols.http.plugin import HttpPlugin
from disque_tx.services.clients.discovery import RespPlugin
from disque_tx.services.tap import DisqueServiceMaker

disque = DisqueServiceMaker()
resp = RespPlugin()
http = HttpPlugin()
beanstalk = BeanstalkPlugin()
